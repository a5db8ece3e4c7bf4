//! Installs an operator for the whole cluster, as a user would.
//!
//! On a separate cluster: such an operator reconciles every object that it finds.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::wait;

use crate::DEADLINE;

use crate::operator::{Operator, command, failure, stdout};
use crate::rbac::works_without_a_403;

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
    cluster.apply(&crds, "default").await;
    let namespace = cluster.namespace("stanchion").await;
    works_without_a_403(&cluster, &namespace, &[], &[]).await;
}

/// The objects that Prometheus is configured to scrape exist, with these names.
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
    // The Secret that the operator may write is the one that Prometheus trusts.
    let secret = endpoint.pointer("/tlsConfig/ca/secret/name").unwrap();
    let rules = of_kind("Role")["rules"].as_array().unwrap().iter();
    let mut named = rules
        .filter_map(|rule| rule["resourceNames"].as_array())
        .flatten();
    assert!(named.any(|name| name == secret), "{secret}");
}

/// One command installs the operator: its pods meet the strictest pod security standard, and the program accepts their
/// arguments.
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
    cluster.apply(&manifest, "default").await;
    let here = "stanchion-system";
    let deployments: Api<Deployment> = Api::namespaced(cluster.client().await, here);
    let deployment = wait::until(&deployments, "stanchion", DEADLINE, |it: &Deployment| {
        let status = it.status.as_ref();
        status.and_then(|status| status.available_replicas) == Some(2)
    })
    .await;
    let container = |spec: Option<PodSpec>| spec.unwrap().containers.remove(0);
    let pods: Api<Pod> = Api::namespaced(cluster.client().await, here);
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    let images: Vec<_> = pods.into_iter().map(|pod| container(pod.spec).image).collect();
    assert_eq!(
        images,
        [
            Some("example.com/stanchion:1".to_owned()),
            Some("example.com/stanchion:1".to_owned())
        ]
    );

    let words = container(deployment.spec.unwrap().template.spec).args.unwrap();
    let (run, words) = words.split_first().unwrap();
    assert_eq!(run, "run");
    // It is not in a pod here: it has its own addresses, which its text log contains, and no Service leads to it.
    let words = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.contains("-addr=") && !word.contains("-format="));
    let words: Vec<&str> = words
        .chain(["--no-webhooks", "--operator-namespace", here])
        .collect();
    let user = cluster.log_in(here, "stanchion").await;
    let operator = Operator::start(user.kubeconfig_path(), &words);
    operator.ready().await;
    operator.stop().await;
}
