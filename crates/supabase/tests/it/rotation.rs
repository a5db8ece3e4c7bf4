//! New keys on request.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use stanchion_api::SupabaseProject;

use crate::stage::{Stage, is_running};

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
