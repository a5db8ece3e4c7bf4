//! Key rotation on request.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use stanchion_api::SupabaseProject;

use crate::test_env::{TestEnv, is_running};

#[tokio::test]
async fn new_keys_are_made_on_request_and_the_old_ones_stay_for_a_while() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let secrets = env.api::<Secret>();
    let value = |secret: &Secret, key: &str| secret.data.as_ref().unwrap().get(key).cloned();
    let before = secrets.get("shop-jwt").await.unwrap();
    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/rotate-keys-at": "2026-01-01T00:00:00Z" } } });
    env.patch::<SupabaseProject>("shop", asked).await;
    // Before any component signs with the new keys, all accept them: the values of the pods show it.
    let is_published = |secret: &Secret| value(secret, "published-at").is_some();
    let published = env.wait().until(&secrets, "shop-jwt", is_published).await;
    for key in ["anon-key", "signing-key", "jwt-secret"] {
        assert_eq!(
            value(&published, key),
            value(&before, key),
            "{key} is used as before"
        );
    }
    let is_new = |secret: &Secret| value(secret, "anon-key") != value(&before, "anon-key");
    let after = env.wait().until(&secrets, "shop-jwt", is_new).await;
    assert_eq!(value(&after, "anon-key-previous"), value(&before, "anon-key"));
    assert_eq!(
        value(&after, "pg-meta-crypto-key"),
        value(&before, "pg-meta-crypto-key")
    );
    let done = |project: &SupabaseProject| {
        let keys = project.status.as_ref().and_then(|status| status.keys.as_ref());
        is_running(project) && keys.is_some_and(|keys| keys.previous_until.is_some())
    };
    env.until("shop", done).await;
    let kong = env.api::<Deployment>().get("shop-kong").await.unwrap();
    let text = serde_json::to_string(&kong).unwrap();
    assert!(
        text.contains("SUPABASE_ANON_KEY_PREVIOUS"),
        "the gateway accepts both"
    );
}

/// While a component does not roll out, the new keys are published but not used; a restart changes nothing.
#[tokio::test]
async fn new_keys_are_not_used_before_every_component_knows_them() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let secrets = env.api::<Secret>();
    let value = |secret: &Secret, key: &str| secret.data.as_ref().unwrap().get(key).cloned();
    let before = secrets.get("shop-jwt").await.unwrap();
    // Pods with this image never become ready.
    env.project("shop", json!({ "meta": { "image": "registry/crash-loop:1" } }))
        .await;
    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/rotate-keys-at": "now" } } });
    env.patch::<SupabaseProject>("shop", asked).await;
    let says_so = |project: &SupabaseProject| {
        let status = project.status.as_ref().unwrap();
        let secrets = status
            .conditions
            .iter()
            .find(|known| known.type_ == "SecretsReady");
        secrets.is_some_and(|it| it.reason == "NewKeysPublished")
            && status
                .keys
                .as_ref()
                .is_some_and(|keys| keys.published_at.is_some())
    };
    env.until("shop", says_so).await;
    drop(operator);
    let _operator = env.operator().await;
    env.until("shop", says_so).await;
    let waiting = secrets.get("shop-jwt").await.unwrap();
    assert_eq!(value(&waiting, "signing-key"), value(&before, "signing-key"));
    let next = value(&waiting, "signing-key-next");
    assert!(next.is_some());
    // The component is fixed: the published keys are used.
    env.project(
        "shop",
        json!({ "meta": { "image": "supabase/postgres-meta:v0.99.0" } }),
    )
    .await;
    let used = |secret: &Secret| value(secret, "signing-key") == next;
    env.wait().until(&secrets, "shop-jwt", used).await;
    env.running("shop").await;
}
