//! `--data`: objects and databases are kept.

use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use stanchion_api::PostgresUser;
use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;

use super::directory::Place;
use super::{client, has};
use crate::DEADLINE;
use crate::operator::{failure, text};

#[tokio::test]
async fn what_is_kept_is_there_again() {
    if !has(&["psql"]) {
        return;
    }
    let place = Place::new();
    let (data, kubeconfig) = (place.file("data"), place.file("kubeconfig"));
    let kept = ["--controllers=user", "--data", &data, "--kubeconfig", &kubeconfig];
    let sandbox = place.start(&kept);
    sandbox.says("Ctrl-C ends everything").await;
    let admin = sandbox
        .line(&["ALTER ROLE"])
        .replace("ALTER ROLE orders NOLOGIN", "CREATE TABLE sales.kept ()");
    sandbox.shell(&admin).await.unwrap();
    let users: Api<PostgresUser> = Api::default_namespaced(client(&kubeconfig).await);
    wait::deleted(&users, "alice", DEADLINE).await;
    let uid = users.get("orders").await.unwrap().uid();

    let output = place.run(&["--api-only", "--data", &data]).await;
    let (line, code) = failure(&output);
    assert!(line.contains("another sandbox uses") && code == Some(1), "{line}");
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));

    let sandbox = place.start(&kept);
    sandbox.says("Ctrl-C ends everything").await;
    let users: Api<PostgresUser> = Api::default_namespaced(client(&kubeconfig).await);
    assert_eq!(users.get("orders").await.unwrap().uid(), uid);
    let alice = users.get_opt("alice").await.unwrap();
    assert!(alice.is_none(), "what was deleted stays deleted: {alice:?}");
    // With kubectl if it exists, and otherwise with a file.
    let log_in = sandbox.line(&["psql", "orders-db"]);
    sandbox.shell(&format!("{log_in} -c ''")).await.unwrap();
    let admin = admin.replace("CREATE TABLE sales.kept ()", "TABLE sales.kept");
    sandbox.shell(&admin).await.unwrap();
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));

    let output = place.run(&[&kept[..], &["--once"]].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    place.is_clean().await;
}

const WITHOUT_A_SECRET: &str = "
apiVersion: db.example.com/v1alpha1
kind: PostgresUser
metadata: {name: bob}
spec:
  instanceRef: {name: local}
  username: bob
  database: app
  privileges: [CONNECT]
  passwordSecretRef: {name: bob-password, key: password}
";

/// Objects that are not ready in time are listed with their reason.
#[tokio::test]
async fn once_fails_with_the_reason() {
    let place = Place::new();
    let (data, kubeconfig) = (place.file("data"), place.file("kubeconfig"));
    let kept = ["--controllers=user", "--data", &data];
    let sandbox = place.start(&[&kept[..], &["--kubeconfig", &kubeconfig]].concat());
    sandbox.says("Ctrl-C ends everything").await;
    let users: Api<PostgresUser> = Api::default_namespaced(client(&kubeconfig).await);
    let user = serde_saphyr::from_str(WITHOUT_A_SECRET).unwrap();
    users.create(&PostParams::default(), &user).await.unwrap();
    sandbox.says("PostgresUser/bob  Failed").await;
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));

    let output = place
        .run(&[&kept[..], &["--once", "--timeout", "5"]].concat())
        .await;
    let line = text(&output.stderr);
    assert!(
        line.contains("not ready within 5 seconds: PostgresUser/bob: "),
        "{line}"
    );
    assert!(line.contains("bob-password"), "{line}");
    assert_eq!(output.status.code(), Some(1));
    place.is_clean().await;
}
