//! Every command that the demo prints works.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;

use super::directory::{Place, Running};
use super::has;
use crate::DEADLINE;

/// One sandbox for all: it is started once, and the systems are independent.
#[tokio::test]
async fn what_it_prints_can_be_done() {
    if !has(&["kubectl", "psql"]) {
        return;
    }
    let place = Place::new();
    let sandbox = place.start(&[]);
    sandbox.says("Ctrl-C ends everything").await;
    tokio::join!(
        users(&sandbox),
        policy(&sandbox),
        supabase(&sandbox),
        gitlab(&sandbox)
    );
    assert_eq!(sandbox.end(Signal::Int).await, Some(0));
    place.is_clean().await;
}

async fn users(sandbox: &Running) {
    let log_in = sandbox.line(&["psql ", "secret orders-db"]);
    let who = sandbox
        .shell(&format!("{log_in} -Atc 'SELECT current_user'"))
        .await;
    assert_eq!(who.as_deref(), Ok("orders"));
    let read = sandbox.follow(&["TABLE sales.orders"]).await.unwrap();
    assert!(read.contains("rocket skates"), "{read}");
    sandbox.follow(&["ALTER ROLE"]).await.unwrap();
    sandbox.says("DriftCorrected").await;
    sandbox.follow(&["kubectl delete secret"]).await.unwrap();
    wait::eventually(DEADLINE, "the Secret to come back", async || {
        sandbox.shell(&format!("{log_in} -c ''")).await
    })
    .await;
    let refused = sandbox.follow(&["kubectl patch pguser"]).await.unwrap_err();
    assert!(refused.contains("immutable"), "{refused}");
    sandbox.follow(&["kubectl delete pguser"]).await.unwrap();
    sandbox.says("PostgresUser/reporting  gone").await;
}

async fn policy(sandbox: &Running) {
    let listed = sandbox.follow(&["kubectl get pgr,pgplan"]).await.unwrap();
    assert!(listed.contains("Applied"), "{listed}");
    let rights = sandbox.follow(&["dp warehouse"]).await.unwrap();
    assert!(rights.contains("warehouse-reader"), "{rights}");
    let revoke = sandbox.line(&["REVOKE SELECT"]);
    let (log_in, _) = revoke.split_once(" -c ").unwrap();
    let question = "SELECT has_table_privilege($$warehouse-reader$$, $$warehouse.parts$$, $$SELECT$$)";
    sandbox.shell(&revoke).await.unwrap();
    wait::eventually(DEADLINE, "the privilege to come back", async || {
        match sandbox.shell(&format!("{log_in} -Atc '{question}'")).await {
            Ok(granted) if granted == "t" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn supabase(sandbox: &Running) {
    let decoded = sandbox.line(&["anon key, decoded"]);
    assert!(decoded.contains(r#""role":"anon""#), "{decoded}");
    let url = sandbox.line(&["nothing listens there"]);
    assert!(url.contains("http://shop-kong"), "{url}");
    let listed = sandbox.follow(&["kubectl get sbp"]).await.unwrap();
    assert!(
        listed.contains("Running") && listed.contains("shop-studio"),
        "{listed}"
    );
    let steps = sandbox.follow(&["_stanchion.steps"]).await.unwrap();
    assert!(steps.contains("memberships"), "{steps}");

    let uid = "kubectl get deployment shop-auth -o jsonpath={.metadata.uid}";
    let before = sandbox.shell(uid).await.unwrap();
    sandbox.follow(&["kubectl delete deployment"]).await.unwrap();
    wait::eventually(DEADLINE, "the Deployment to come back", async || {
        match sandbox.shell(uid).await {
            Ok(now) if now != before => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    sandbox
        .follow(&["kubectl patch sbp", "no-such-image"])
        .await
        .unwrap();
    sandbox.says("ImagePull").await;
    sandbox.follow(&["kubectl patch sbp", "null"]).await.unwrap();
    let ready = "kubectl wait sbp/shop --for=condition=Ready --timeout=120s";
    sandbox.shell(ready).await.unwrap();
}

async fn gitlab(sandbox: &Running) {
    let listed = sandbox.follow(&["kubectl get gli"]).await.unwrap();
    assert!(
        listed.contains("17.5.5") && listed.contains("code-gitlab"),
        "{listed}"
    );
    sandbox.follow(&["kubectl patch gli", "stable"]).await.unwrap();
    let version = "kubectl get gli code -o jsonpath={.status.observedVersion}/{.status.phase}";
    wait::eventually(DEADLINE, "the last version to run", async || {
        match sandbox.shell(version).await {
            Ok(now) if now == "17.11.7/Ready" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let charts = "kubectl get helmrelease code-gitlab -o jsonpath={.status.history[*].chartVersion}";
    let charts = sandbox.shell(charts).await.unwrap();
    assert_eq!(charts, "8.11.8 8.8.7 8.5.5", "over the stop between");
    sandbox.follow(&["kubectl patch gli", "17.5"]).await.unwrap();
    sandbox.says("UpgradeBlocked").await;
    sandbox.follow(&["kubectl patch gli", "stable"]).await.unwrap();
    sandbox.follow(&["kubectl delete helmrelease"]).await.unwrap();
    let ready = "kubectl wait gli/code --for=condition=Ready --timeout=120s";
    sandbox.shell(ready).await.unwrap();
}

#[tokio::test]
async fn somebody_without_kubectl_can_log_in_all_the_same() {
    if !has(&["psql"]) {
        return;
    }
    let place = Place::new();
    let bare = place.file("bin");
    fs::create_dir(&bare).unwrap();
    for program in ["rm", "sleep"] {
        symlink(Path::new("/bin").join(program), Path::new(&bare).join(program)).unwrap();
    }
    let sandbox = place.start_with(&["--controllers=user"], OsStr::new(&bare));
    sandbox.says("Ctrl-C ends everything").await;
    sandbox.says("kubectl is not in PATH").await;
    // It has not found psql either, and prints its name anyway, or the path of the server's own.
    let log_in = sandbox.line(&["psql", "service=orders-db"]);
    let who = sandbox
        .shell(&format!("{log_in} -Atc 'SELECT current_user'"))
        .await;
    assert_eq!(who.as_deref(), Ok("orders"));
    assert_eq!(sandbox.end(Signal::Int).await, Some(0));
    place.is_clean().await;
}
