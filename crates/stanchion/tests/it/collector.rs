//! `--otlp-endpoint`: a collector receives the operator's metrics.

use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::collector::Collector;

use crate::operator::Operator;

/// The final values of an operator are sent before it ends.
#[tokio::test]
async fn the_numbers_of_an_operator_reach_a_collector() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let (namespace, collector) = (cluster.namespace("otlp").await, Collector::start().await);
    let endpoint = collector.endpoint();
    let operator = Operator::start(
        &cluster.kubeconfig_path(),
        &[
            "--controllers",
            "policy",
            "--namespace",
            &namespace,
            "--operator-namespace",
            &namespace,
            "--no-webhooks",
            "--otlp-endpoint",
            &endpoint,
        ],
    );
    operator.ready().await;
    operator.stop().await;
    assert_eq!(collector.total("pgroles.reconcile.inflight"), Some(0.0));
    assert!(collector.total("rest_client_requests_total") > Some(0.0));
    assert_eq!(collector.sender()["service.name"], "stanchion");
}
