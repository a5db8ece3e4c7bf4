//! The life of a project: made, running, changed, gone.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use crate::stage::{Stage, condition};

#[tokio::test]
async fn a_project_comes_to_run() {
    let stage = Stage::new().await;
    let operator = stage.operator().await;
    stage.project("shop", json!({})).await;
    let project = stage.running("shop").await;
    let names = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let all = ListParams::default();
    let deployments = stage.api::<Deployment>().list(&all).await.unwrap();
    let expected = [
        "auth",
        "kong",
        "meta",
        "postgrest",
        "realtime",
        "storage",
        "studio",
    ];
    let expected: Vec<String> = expected.iter().map(|name| format!("shop-{name}")).collect();
    assert_eq!(
        names(deployments.iter().map(ResourceExt::name_any).collect()),
        expected
    );
    let services = stage.api::<Service>().list(&all).await.unwrap();
    assert_eq!(
        names(services.iter().map(ResourceExt::name_any).collect()),
        expected
    );
    stage.api::<ConfigMap>().get("shop-kong-config").await.unwrap();
    stage.api::<Secret>().get("shop-jwt").await.unwrap();

    let status = project.status.clone().unwrap();
    assert_eq!(status.message.as_deref(), Some("All components running"));
    for (kind, truth) in [
        ("Ready", "True"),
        ("Progressing", "False"),
        ("Available", "True"),
        ("Degraded", "False"),
        ("PostgreSQLConnected", "True"),
        ("S3Connected", "True"),
        ("NetworkReady", "True"),
        ("SecretsReady", "True"),
        ("KongReady", "True"),
        ("StudioReady", "True"),
    ] {
        let found = condition(&project, kind).map(|(truth, _)| truth);
        assert_eq!(found.as_deref(), Some(truth), "{kind}");
    }
    let dependencies = status.dependencies.unwrap();
    assert!(dependencies.postgresql.unwrap().connected && dependencies.s3.unwrap().connected);
    assert_eq!(
        status.endpoints.unwrap().api.as_deref(),
        Some("http://shop-kong:8000")
    );
    assert!(status.components.values().all(|component| component.ready));
    let calls = operator.calls();
    assert!(calls.len() <= 25, "{} calls: {calls:#?}", calls.len());
}

/// A restart finds everything as it was left, and writes nothing.
#[tokio::test]
async fn a_second_operator_finds_nothing_to_do() {
    let stage = Stage::new().await;
    let first = stage.operator().await;
    stage.project("shop", json!({})).await;
    let before = stage.running("shop").await;
    drop(first);
    let second = stage.operator().await;
    // It has had its first pass when it has reacted to a change that came after it.
    stage.project("later", json!({})).await;
    stage.until("later", |project| project.status.is_some()).await;
    let after = stage.running("shop").await;
    let writes = second.faults.writes();
    let ours: Vec<String> = writes
        .iter()
        .filter(|call| call.target.name.starts_with("shop"))
        .map(|call| format!("{} {} {}", call.method, call.target.name, call.target.subresource))
        .collect();
    assert_eq!(ours, [""; 0], "written although nothing had changed");
    assert_eq!(after.status, before.status);
}

#[tokio::test]
async fn what_is_deleted_or_changed_by_hand_is_mended() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    stage.project("shop", json!({})).await;
    stage.running("shop").await;
    let services = stage.api::<Service>();
    let before = services.get("shop-auth").await.unwrap();
    stage.delete::<Service>("shop-auth").await;
    let is_new = |service: &Service| service.metadata.uid != before.metadata.uid;
    stage.wait().until(&services, "shop-auth", is_new).await;
    stage
        .patch::<Deployment>("shop-meta", json!({ "spec": { "replicas": 5 } }))
        .await;
    let is_one = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(1);
    stage
        .wait()
        .until(&stage.api::<Deployment>(), "shop-meta", is_one)
        .await;
}
