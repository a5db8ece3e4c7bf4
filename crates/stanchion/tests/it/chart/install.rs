//! A release on a cluster: install, upgrade, roll back, uninstall; with the program in place of its pods, with exactly
//! their arguments and their `ServiceAccount`.

use std::path::Path;

use serde_json::Value;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::{port, unique};

use super::{chart, helm, kubectl, run, template};
use crate::operator::{Operator, command, text};
use crate::users::{UrlFile, postgres_user, ready};

pub(super) const NAMESPACE: &str = "stanchion-system";

/// helm on this cluster. The chart does not wait for pods: no container runs here.
pub(super) fn on(cluster: &Cluster, helm: &Path, words: &[&str]) -> String {
    let kubeconfig = cluster.kubeconfig_path();
    let place = ["--kubeconfig", kubeconfig.to_str().unwrap(), "-n", NAMESPACE];
    run(helm, &[words, &place[..]].concat()).unwrap()
}

pub(super) async fn get(cluster: &Cluster, words: &[&str]) -> Value {
    let words = [&["-n", NAMESPACE, "get", "-o", "json"], words].concat();
    serde_json::from_str(&kubectl(cluster).run(&words).await.unwrap()).unwrap()
}

/// The arguments of the pods, adjusted so that the program can be reached and finds its server.
pub(super) async fn arguments(cluster: &Cluster) -> Vec<String> {
    let deployment = get(cluster, &["deployment", "stanchion"]).await;
    let words = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        .as_array()
        .unwrap()
        .clone();
    let words = words.iter().map(|word| word.as_str().unwrap().to_owned());
    // It is not in a pod here: it has its own addresses, which its text log contains, and no Service leads to it.
    let of_a_pod = [
        "run",
        "--health-addr",
        "--metrics-addr",
        "--webhook-addr",
        "--webhook-service",
        "--log-format",
        "--postgres-url-file",
    ];
    words
        .filter(|word| !of_a_pod.iter().any(|start| word.starts_with(start)))
        .collect()
}

/// `helm test` passes; the program also passes with the pod's arguments and account.
async fn tested(cluster: &Cluster, helm: &Path) {
    let objects = template(helm, &["-s", "templates/tests/doctor.yaml"]);
    let (jobs, permissions): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| object["kind"] == "Job");
    let permissions: Vec<String> = permissions.iter().map(ToString::to_string).collect();
    let apply = ["apply", "-f", "-"];
    kubectl(cluster)
        .run_with(&apply, &permissions.join("\n---\n"))
        .await
        .unwrap();
    let user = cluster.log_in(NAMESPACE, "stanchion-test").await;
    let words = jobs[0]
        .pointer("/spec/template/spec/containers/0/args")
        .unwrap()
        .as_array()
        .unwrap();
    let mut doctor = command(words.iter().map(|word| word.as_str().unwrap()));
    doctor.env("KUBECONFIG", user.kubeconfig_path());
    let output = tokio::task::spawn_blocking(move || doctor.output().unwrap())
        .await
        .unwrap();
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.lines().last().unwrap().starts_with("ok ("),
        "{said}"
    );
    for check in [
        "operator-unavailable",
        "lease-expired",
        "webhook-missing",
        "crd-missing",
    ] {
        assert!(!said.contains(check), "it may look at {check}: {said}");
    }
    // It replaces what was applied, and removes it again.
    on(cluster, helm, &["test", "stanchion", "--timeout", "2m"]);
}

/// Existing objects stay, and a changed CRD is restored.
async fn upgraded_and_rolled_back(cluster: &Cluster, helm: &Path) {
    let chart = chart();
    let chart = chart.to_str().unwrap();
    let crd = "customresourcedefinitions.apiextensions.k8s.io/postgresusers.db.example.com";
    let shorter = r#"[{"op": "remove", "path": "/spec/names/shortNames"}]"#;
    kubectl(cluster)
        .run(&["patch", crd, "--type=json", "-p", shorter])
        .await
        .unwrap();
    let mut upgrade = vec!["upgrade", "stanchion", chart, "--set", "replicas=2,concurrency=4"];
    // Helm 3 does not apply on the server, so kubectl's ownership of a field is no conflict for it.
    if !run(helm, &["version", "--template", "{{.Version}}"])
        .unwrap()
        .starts_with("v3.")
    {
        upgrade.push("--force-conflicts");
    }
    on(cluster, helm, &upgrade);
    let short = get(cluster, &[crd]).await["spec"]["names"]["shortNames"].clone();
    assert!(short.as_array().is_some_and(|names| !names.is_empty()), "{short}");
    assert!(arguments(cluster).await.contains(&"--concurrency=4".to_owned()));
    get(cluster, &["poddisruptionbudget", "stanchion"]).await;
    on(cluster, helm, &["rollback", "stanchion", "1"]);
    assert!(!arguments(cluster).await.contains(&"--concurrency=4".to_owned()));
}

#[tokio::test]
async fn a_release_lives_and_leaves_definitions_and_objects_behind() {
    let Some(helm) = helm("install") else { return };
    // A separate cluster: the operator reconciles every object that it finds.
    let cluster = Cluster::start().await;
    let chart = chart();
    let chart = chart.to_str().unwrap();
    let create = format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{NAMESPACE}","labels":{{"pod-security.kubernetes.io/enforce":"restricted"}}}}}}"#
    );
    kubectl(&cluster)
        .run_with(&["apply", "-f", "-"], &create)
        .await
        .unwrap();
    let said = on(
        &cluster,
        &helm,
        &["install", "stanchion", chart, "--set", "replicas=1"],
    );
    assert!(said.contains("stanchion status -A"), "{said}");
    let available = [
        "-n",
        NAMESPACE,
        "wait",
        "deployment/stanchion",
        "--for=condition=Available",
        "--timeout=120s",
    ];
    kubectl(&cluster).run(&available).await.unwrap();
    kubectl(&cluster)
        .run(&[
            "wait",
            "crd",
            "--all",
            "--for=condition=Established",
            "--timeout=60s",
        ])
        .await
        .unwrap();

    // The program with the release's account: every request is allowed.
    let user = cluster.log_in(NAMESPACE, "stanchion").await;
    let audit = cluster.audit();
    let database = Database::of(Version::V15).await;
    let file = UrlFile::new(&database.url());
    let webhooks = port::free();
    let reached = [
        format!("--webhook-addr=127.0.0.1:{webhooks}"),
        format!("--webhook-url=https://127.0.0.1:{webhooks}"),
    ];
    let words = arguments(&cluster).await;
    let words: Vec<&str> = words
        .iter()
        .chain(&reached)
        .map(String::as_str)
        .chain(file.arguments())
        .collect();
    let operator = Operator::start(user.kubeconfig_path(), &words);
    operator.ready().await;
    operator
        .wait_for("the webhooks to be registered", async || {
            operator.log().contains("webhooks registered")
        })
        .await;
    let namespace = cluster.namespace("tenant").await;
    let role = unique::name("u");
    let manifest = postgres_user("app", &role, &database).to_string();
    cluster.apply(&manifest, &namespace).await;
    ready(&operator, &cluster, &namespace, "app").await;

    tested(&cluster, &helm).await;

    upgraded_and_rolled_back(&cluster, &helm).await;
    ready(&operator, &cluster, &namespace, "app").await;

    let log = operator.log();
    operator.stop().await;
    let requests = audit.requests().await.of_user(user.name());
    assert!(requests.clone().writes().count() > 0, "{requests:#?}");
    let forbidden = requests.forbidden();
    assert_eq!(forbidden.count(), 0, "{forbidden:#?}\n{log}");

    on(&cluster, &helm, &["uninstall", "stanchion"]);
    let object = kubectl(&cluster)
        .run(&["-n", &namespace, "get", "postgresuser", "app"])
        .await;
    assert!(object.is_ok(), "{object:?}");
    let left = kubectl(&cluster)
        .run(&[
            "-n",
            NAMESPACE,
            "get",
            "deployment,role,service,networkpolicy",
            "-o",
            "name",
        ])
        .await;
    assert_eq!(left.unwrap(), "");
    // And it can be installed again over what it left.
    on(&cluster, &helm, &["install", "stanchion", chart]);
    kubectl(&cluster).run(&available).await.unwrap();
}

/// `nameOverride` and `fullnameOverride` change every name, and doctor still finds the operator.
#[tokio::test]
async fn doctor_finds_an_operator_under_another_name() {
    let Some(helm) = helm("another_name") else { return };
    let cluster = Cluster::start().await;
    let create = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{NAMESPACE}"}}}}"#);
    cluster.apply(&create, NAMESPACE).await;
    let chart = chart();
    let names = "nameOverride=databases,fullnameOverride=platform";
    let words = ["install", "stanchion", chart.to_str().unwrap(), "--set", names];
    on(&cluster, &helm, &words);
    let available = [
        "-n",
        NAMESPACE,
        "wait",
        "deployment/platform",
        "--for=condition=Available",
        "--timeout=120s",
    ];
    kubectl(&cluster).run(&available).await.unwrap();
    let mut doctor = command(["doctor", "-A", "-o", "json"]);
    doctor.env("KUBECONFIG", cluster.kubeconfig_path());
    let output = tokio::task::spawn_blocking(move || doctor.output().unwrap())
        .await
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    // No container runs here, so no replica leads; all else is as it should be.
    let found: Vec<(&str, &str)> = said["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            (
                finding["check"].as_str().unwrap(),
                finding["subject"].as_str().unwrap(),
            )
        })
        .collect();
    let subject = "Deployment stanchion-system/platform";
    assert_eq!(
        found,
        [("lease-missing", subject), ("webhook-missing", subject)],
        "{said:#}"
    );
}
