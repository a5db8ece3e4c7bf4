//! `--otlp-endpoint`, or the usual variable: a collector receives the operator's metrics.

use std::ffi::OsStr;

use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::collector::Collector;

use crate::operator::Operator;

/// The final values of an operator are sent before it ends.
#[tokio::test]
async fn the_numbers_of_an_operator_reach_a_collector() {
    let collector = Collector::start().await;
    let endpoint = collector.endpoint();
    run("otlp", &["--otlp-endpoint", &endpoint], &[]).await;
    received(&collector);
}

/// The variable alone switches the export on.
#[tokio::test]
async fn the_numbers_reach_the_collector_that_the_usual_variable_names() {
    let collector = Collector::start().await;
    let endpoint = collector.endpoint();
    run(
        "otlp-variable",
        &[],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_ref())],
    )
    .await;
    received(&collector);
}

/// Runs an operator until it is ready.
async fn run(namespace: &str, more: &[&str], variables: &[(&str, &OsStr)]) {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace(namespace).await;
    let arguments = [
        "--controllers",
        "policy",
        "--namespace",
        &namespace,
        "--operator-namespace",
        &namespace,
        "--no-webhooks",
    ];
    let arguments = [&arguments[..], more].concat();
    let operator = Operator::start_with(&cluster.kubeconfig_path(), &arguments, variables);
    operator.ready().await;
    operator.stop().await;
}

fn received(collector: &Collector) {
    assert_eq!(collector.total("pgroles.reconcile.inflight"), Some(0.0));
    assert!(collector.total("rest_client_requests_total") > Some(0.0));
    assert_eq!(collector.sender()["service.name"], "stanchion");
}
