//! A running installation of the operator that came before, and its goodbye.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;

use crate::stage::Stage;

fn labels(name: &str, component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/instance": "shop",
        "app.kubernetes.io/component": component, "app.kubernetes.io/part-of": "supabase",
        "app.kubernetes.io/managed-by": "supabase-operator",
    })
}

/// As the predecessor wrote it: by plain updates, with what is wrong with it.
fn old_deployment(project: &SupabaseProject) -> Deployment {
    let labels = labels("postgrest", "rest-api");
    let container = json!({
        "name": "postgrest", "image": "postgrest/postgrest:v14.12",
        "ports": [{ "name": "http", "containerPort": 3000, "protocol": "TCP" }],
        "env": [
            { "name": "PGRST_JWT_SECRET_IS_BASE64", "value": "true" },
            { "name": "PGRST_DB_SCHEMAS", "value": "public" },
        ],
    });
    let owner = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "name": "shop",
        "uid": project.uid().unwrap(), "controller": true, "blockOwnerDeletion": true,
    });
    serde_json::from_value(json!({
        "metadata": { "name": "shop-postgrest", "labels": labels, "ownerReferences": [owner] },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn what_a_predecessor_left_is_taken_over_and_corrected() {
    let stage = Stage::new().await;
    let project = stage.project("shop", json!({})).await;
    let finalizer = json!({ "metadata": { "finalizers": ["supabase.strrl.dev/finalizer"] } });
    stage.patch::<SupabaseProject>("shop", finalizer).await;
    let deployments = stage.api::<Deployment>();
    let before = deployments
        .create(&PostParams::default(), &old_deployment(&project))
        .await
        .unwrap();
    let keys: Secret = serde_json::from_value(json!({
        "metadata": { "name": "shop-jwt" },
        "stringData": { "jwt-secret": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=", "anon-key": "a.b.c" },
    }))
    .unwrap();
    stage
        .api::<Secret>()
        .create(&PostParams::default(), &keys)
        .await
        .unwrap();
    let _operator = stage.operator().await;
    stage.running("shop").await;

    let after = deployments.get("shop-postgrest").await.unwrap();
    assert_eq!(after.uid(), before.uid(), "not made anew");
    assert_eq!(after.labels(), before.labels());
    let text = serde_json::to_string(&after.spec).unwrap();
    assert!(!text.contains("PGRST_JWT_SECRET_IS_BASE64"), "{text}");
    assert!(text.contains("public,graphql_public"), "{text}");
    let keys = stage.api::<Secret>().get("shop-jwt").await.unwrap().data.unwrap();
    assert_eq!(
        keys["jwt-secret"].0,
        b"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I="
    );
    assert_eq!(keys["anon-key-previous"].0, b"a.b.c");
    assert!(keys.contains_key("pg-meta-crypto-key"));

    // Its finalizer holds nothing up, even when the Secrets went first.
    stage.delete::<Secret>("db").await;
    stage.delete::<Secret>("s3").await;
    stage.delete::<SupabaseProject>("shop").await;
    let projects = stage.api::<SupabaseProject>();
    Box::pin(stage.wait().gone(&projects, "shop")).await;
    stage.wait().gone(&deployments, "shop-postgrest").await;
}
