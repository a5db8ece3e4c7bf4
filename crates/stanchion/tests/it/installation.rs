//! From nothing to an operator for the whole cluster, as a user would do it.
//!
//! On a cluster of its own: such an operator takes care of every object that it finds.

use serde_json::Value;
use stanchion_testkit::cluster::Cluster;

use crate::operator::{Operator, command, failure, stdout};
use crate::rights::works_without_a_403;

#[tokio::test]
async fn an_empty_cluster_is_refused_and_works_once_the_manifests_are_applied() {
    let cluster = Cluster::start().await;
    let mut run = command([
        "run",
        "--health-addr",
        "127.0.0.1:0",
        "--metrics-addr",
        "127.0.0.1:0",
    ]);
    run.env("KUBECONFIG", cluster.kubeconfig_path());
    let output = tokio::task::spawn_blocking(move || run.output().unwrap());
    let (line, code) = failure(&output.await.unwrap());
    assert!(line.contains("stanchion crds | kubectl apply -f -"), "{line}");
    assert_eq!(code, Some(1));

    let crds = stdout(["crds"]);
    cluster
        .kubectl_with(&["apply", "--server-side", "-f", "-"], &crds)
        .await
        .unwrap();
    let namespace = cluster.namespace("stanchion").await;
    works_without_a_403(&cluster, &namespace, &[], &[]).await;
}

/// What Prometheus is told to scrape is there, by these names.
#[test]
fn a_service_monitor_finds_the_service() {
    let words = [
        "manifest",
        "--image",
        "x",
        "--service-account",
        "here/it",
        "--service-monitor",
    ];
    let objects: Vec<Value> = serde_saphyr::from_multiple(&stdout(words)).unwrap();
    let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
    let (monitor, service) = (of_kind("ServiceMonitor"), of_kind("Service"));
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(monitor["metadata"]["namespace"], "here");
    assert_eq!(
        monitor["spec"]["selector"]["matchLabels"],
        service["metadata"]["labels"]
    );
    assert_eq!(endpoint["port"], service["spec"]["ports"][0]["name"]);
    assert_eq!(endpoint["tlsConfig"]["serverName"], "stanchion.here.svc");
    // The Secret that the operator may write is the one that Prometheus is to trust.
    let secret = endpoint.pointer("/tlsConfig/ca/secret/name").unwrap();
    let rules = of_kind("Role")["rules"].as_array().unwrap().iter();
    let mut named = rules
        .filter_map(|rule| rule["resourceNames"].as_array())
        .flatten();
    assert!(named.any(|name| name == secret), "{secret}");
}

/// One command, and the operator's pods are let in by the strictest rules for pods, with words that the program takes.
#[tokio::test]
async fn the_manifest_is_all_that_an_empty_cluster_needs() {
    let cluster = Cluster::start().await;
    let manifest = stdout([
        "manifest",
        "--image",
        "example.com/stanchion:1",
        "--controllers",
        "user",
    ]);
    let apply = ["apply", "--server-side", "-f", "-"];
    cluster.kubectl_with(&apply, &manifest).await.unwrap();
    let here = ["-n", "stanchion-system"];
    let kubectl = async |words: &[&str]| cluster.kubectl(&[&here[..], words].concat()).await;
    let available = [
        "wait",
        "deployment/stanchion",
        "--for=condition=Available",
        "--timeout=60s",
    ];
    kubectl(&available).await.unwrap();
    let pods = [
        "get",
        "pods",
        "-o",
        "jsonpath={.items[*].spec.containers[0].image}",
    ];
    assert_eq!(
        kubectl(&pods).await.unwrap(),
        "example.com/stanchion:1 example.com/stanchion:1"
    );

    let words = [
        "get",
        "deployment",
        "stanchion",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].args}",
    ];
    let words: Vec<String> = serde_json::from_str(&kubectl(&words).await.unwrap()).unwrap();
    let (run, words) = words.split_first().unwrap();
    assert_eq!(run, "run");
    // Here it is no pod: it has addresses of its own, which its log tells as text, and nobody reaches it by a Service.
    let words = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.contains("-addr=") && !word.contains("-format="));
    let words: Vec<&str> = words
        .chain(["--no-webhooks", "--operator-namespace", here[1]])
        .collect();
    let user = cluster.log_in(here[1], "stanchion").await;
    let operator = Operator::start(user.kubeconfig_path(), &words);
    operator.ready().await;
    operator.stop().await;
}
