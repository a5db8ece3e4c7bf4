//! What follows from a change: of the spec, of a Secret, of a pod's fate.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::ListParams;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;

use crate::stage::{Stage, condition, is_running};

fn image(deployment: &Deployment) -> String {
    let spec = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    spec.containers[0].image.clone().unwrap()
}

async fn generations(stage: &Stage) -> Vec<(String, i64)> {
    let all = stage
        .api::<Deployment>()
        .list(&ListParams::default())
        .await
        .unwrap();
    let mut all: Vec<(String, i64)> = all
        .into_iter()
        .map(|deployment| {
            (
                deployment.metadata.name.unwrap(),
                deployment.metadata.generation.unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

fn rolled(before: &[(String, i64)], after: &[(String, i64)]) -> Vec<String> {
    let changed = after.iter().filter(|now| !before.contains(now));
    changed.map(|(name, _)| name.clone()).collect()
}

#[tokio::test]
async fn a_new_image_rolls_what_it_belongs_to_and_nothing_else() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    stage.project("shop", json!({})).await;
    stage.running("shop").await;
    let before = generations(&stage).await;
    stage
        .project("shop", json!({ "auth": { "image": "supabase/gotrue:v9" } }))
        .await;
    let project = stage.running("shop").await;
    let auth = stage.api::<Deployment>().get("shop-auth").await.unwrap();
    assert_eq!(image(&auth), "supabase/gotrue:v9");
    assert_eq!(rolled(&before, &generations(&stage).await), ["shop-auth"]);
    assert_eq!(
        project.status.unwrap().components["auth"].version.as_deref(),
        Some("supabase/gotrue:v9")
    );
}

#[tokio::test]
async fn zero_is_zero_and_what_is_switched_off_goes() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    stage
        .project(
            "shop",
            json!({ "meta": { "replicas": 0 }, "ingress": { "enabled": true, "host": "shop.example.com" } }),
        )
        .await;
    let project = stage.running("shop").await;
    let meta = stage.api::<Deployment>().get("shop-meta").await.unwrap();
    assert_eq!(meta.spec.unwrap().replicas, Some(0));
    assert!(project.status.as_ref().unwrap().components["meta"].ready);
    assert_eq!(
        project.status.unwrap().endpoints.unwrap().api.as_deref(),
        Some("http://shop.example.com")
    );
    stage.api::<Ingress>().get("shop").await.unwrap();
    stage
        .project("shop", json!({ "studio": { "enabled": false } }))
        .await;
    stage.wait().gone(&stage.api::<Ingress>(), "shop").await;
    stage.wait().gone(&stage.api::<Deployment>(), "shop-studio").await;
    let project = stage.running("shop").await;
    assert!(!project.status.unwrap().components.contains_key("studio"));
}

#[tokio::test]
async fn a_pod_that_cannot_run_is_reported_in_its_own_words_and_recovers() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    stage
        .project("shop", json!({ "auth": { "image": "registry/no-such-image:1" } }))
        .await;
    let failed = |project: &SupabaseProject| {
        project.status.as_ref().and_then(|status| status.phase) == Some(Phase::Failed)
    };
    let project = stage.until("shop", failed).await;
    let message = project.status.as_ref().unwrap().message.clone().unwrap();
    assert!(message.contains("auth") && message.contains("Image"), "{message}");
    let truth = |kind: &str| {
        condition(&project, kind)
            .map(|(truth, _)| truth)
            .unwrap_or_default()
    };
    assert_eq!(
        (
            truth("Ready"),
            truth("Degraded"),
            truth("AuthReady"),
            truth("KongReady")
        ),
        ("False".into(), "True".into(), "False".into(), "True".into())
    );
    stage
        .project("shop", json!({ "auth": { "image": "supabase/gotrue:v2.196.0" } }))
        .await;
    let project = stage.running("shop").await;
    assert_eq!(condition(&project, "Degraded").unwrap().0, "False");
}

#[tokio::test]
async fn a_missing_secret_is_named_and_its_appearance_wakes() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    let missing = json!({ "database": { "secretRef": { "name": "later" } } });
    stage.project("shop", missing).await;
    let waiting = |project: &SupabaseProject| {
        condition(project, "Ready") == Some(("False".into(), "DependencyValidationFailed".into()))
    };
    let project = stage.until("shop", waiting).await;
    let status = project.status.unwrap();
    assert_eq!(status.phase, Some(Phase::Failed));
    assert_eq!(
        status.message.as_deref(),
        Some("Dependency validation failed: database secret 'later' not found")
    );
    stage.secret("later", stage.database_secret()).await;
    stage.running("shop").await;
}

#[tokio::test]
async fn a_wrong_password_and_a_wrong_key_are_found_out() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    let with = |mut values: Value, key: &str| {
        values[key] = json!("wrong");
        values
    };
    stage
        .secret("db", with(stage.database_secret(), "password"))
        .await;
    stage
        .secret("s3", with(stage.storage_secret(), "secretAccessKey"))
        .await;
    stage.project("shop", json!({})).await;
    let refused = |project: &SupabaseProject| {
        let is_false = |kind| condition(project, kind).is_some_and(|(truth, _)| truth == "False");
        is_false("PostgreSQLConnected") && is_false("S3Connected")
    };
    let project = stage.until("shop", refused).await;
    let dependencies = project.status.unwrap().dependencies.unwrap();
    for dependency in [dependencies.postgresql.unwrap(), dependencies.s3.unwrap()] {
        assert!(!dependency.connected && dependency.error.is_some());
    }
    stage.secret("db", stage.database_secret()).await;
    stage.secret("s3", stage.storage_secret()).await;
    stage.running("shop").await;
}

#[tokio::test]
async fn a_changed_secret_rolls_the_pods_that_use_it() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    stage
        .secret("login", json!({ "username": "me", "password": "one" }))
        .await;
    let spec = json!({ "studio": { "dashboardBasicAuthSecretRef": { "name": "login" } } });
    stage.project("shop", spec).await;
    stage.running("shop").await;
    let before = generations(&stage).await;
    stage
        .secret("login", json!({ "username": "me", "password": "two" }))
        .await;
    let is_rolled = |kong: &Deployment| {
        let generation = before.iter().find(|(name, _)| name == "shop-kong").unwrap().1;
        kong.metadata.generation > Some(generation)
    };
    stage
        .wait()
        .until(&stage.api::<Deployment>(), "shop-kong", is_rolled)
        .await;
    stage.running("shop").await;
    assert_eq!(rolled(&before, &generations(&stage).await), ["shop-kong"]);
}

#[tokio::test]
async fn new_keys_are_made_on_request_and_the_old_ones_stay_for_a_while() {
    let stage = Stage::new().await;
    let _operator = stage.operator().await;
    stage.project("shop", json!({})).await;
    stage.running("shop").await;
    let secrets = stage.api::<Secret>();
    let value = |secret: &Secret, key: &str| secret.data.as_ref().unwrap().get(key).cloned();
    let before = secrets.get("shop-jwt").await.unwrap();
    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/rotate-keys-at": "2026-01-01T00:00:00Z" } } });
    stage.patch::<SupabaseProject>("shop", asked).await;
    let is_new = |secret: &Secret| value(secret, "anon-key") != value(&before, "anon-key");
    let after = stage.wait().until(&secrets, "shop-jwt", is_new).await;
    assert_eq!(value(&after, "anon-key-previous"), value(&before, "anon-key"));
    assert_eq!(
        value(&after, "pg-meta-crypto-key"),
        value(&before, "pg-meta-crypto-key")
    );
    let done = |project: &SupabaseProject| {
        let keys = project.status.as_ref().and_then(|status| status.keys.as_ref());
        is_running(project) && keys.is_some_and(|keys| keys.previous_until.is_some())
    };
    stage.until("shop", done).await;
    let kong = stage.api::<Deployment>().get("shop-kong").await.unwrap();
    let text = serde_json::to_string(&kong).unwrap();
    assert!(
        text.contains("SUPABASE_ANON_KEY_PREVIOUS"),
        "the gateway accepts both"
    );
}
