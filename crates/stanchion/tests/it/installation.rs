//! From nothing to an operator for the whole cluster, as a user would do it.
//!
//! On a cluster of its own: such an operator takes care of every object that it finds.

use stanchion_testkit::cluster::Cluster;

use crate::operator::{command, failure, stdout};
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
