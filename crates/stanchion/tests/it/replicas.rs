//! Several replicas: one leader, and standby replicas.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::process::Signal;

use crate::operator::Operator;

const LEADS: &str = r#"leader_election_master_status{name="stanchion"}"#;

async fn replica(cluster: &Cluster, namespace: &str) -> Operator {
    let arguments = [
        "--leader-elect",
        "--namespace",
        namespace,
        "--operator-namespace",
        namespace,
        "--no-webhooks",
    ];
    let replica = Operator::start(&cluster.kubeconfig_path(), &arguments);
    replica.ready().await;
    replica
}

async fn leads(replica: &Operator) {
    replica
        .wait_for("leadership", async || replica.metric(LEADS).await == Some(1.0))
        .await;
}

#[tokio::test]
async fn one_leads_and_another_takes_over_when_it_is_killed() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("replicas").await;
    let mut first = replica(cluster, &namespace).await;
    leads(&first).await;
    let second = replica(cluster, &namespace).await;
    second
        .wait_for("the second to find the first", async || {
            second.log().contains("another replica leads")
        })
        .await;
    assert_eq!(second.metric(LEADS).await, Some(0.0), "{}", second.log());

    first.signal(Signal::Kill);
    first.ended().await;
    leads(&second).await;
    second.ready().await;
    second.stop().await;
}

#[tokio::test]
async fn one_that_stops_hands_over_and_one_that_loses_the_lease_fails() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("replicas").await;
    let first = replica(cluster, &namespace).await;
    leads(&first).await;
    first.stop().await;

    let mut second = replica(cluster, &namespace).await;
    leads(&second).await;
    let taken = json!({ "spec": { "holderIdentity": "somebody else" } });
    let leases: Api<Lease> = Api::namespaced(cluster.client().await, &namespace);
    leases
        .patch("stanchion", &PatchParams::default(), &Patch::Merge(&taken))
        .await
        .unwrap();
    assert_eq!(second.ended().await, Some(1), "{}", second.log());
    let log = second.log();
    assert!(
        log.lines()
            .last()
            .unwrap()
            .starts_with("error: this replica lost the leader lease"),
        "{log}"
    );
}
