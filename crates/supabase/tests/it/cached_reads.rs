//! The cost of a change of the spec: an unchanged Secret is not read again. And what is not cached for long.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_testkit::proxy::Cut;

use crate::test_env::{Running, TestEnv, condition};

/// The operator's calls, from a change of the project until it runs again.
async fn calls_of(env: &TestEnv, operator: &Running, change: Value) -> Vec<String> {
    operator.idle().await;
    let before = operator.calls().len();
    env.project("shop", change).await;
    env.running("shop").await;
    let mut calls = operator.calls();
    calls.drain(..before);
    calls.retain(|call| !call.contains(" events ") && !call.contains(" supabaseprojects "));
    calls
}

#[tokio::test]
async fn a_change_of_one_component_is_one_write_and_no_read() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let change = json!({ "auth": { "image": "supabase/gotrue:v9" } });
    let calls = calls_of(&env, &operator, change).await;
    assert_eq!(calls, ["PATCH deployments shop-auth "]);
}

#[tokio::test]
async fn what_was_not_read_or_has_changed_is_read() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    env.secret("other", env.storage_secret()).await;
    let other = json!({ "storage": { "secretRef": { "name": "other" } } });
    let calls = calls_of(&env, &operator, other.clone()).await;
    assert!(calls.contains(&"GET secrets other ".to_owned()), "{calls:?}");
    let mut values = env.storage_secret();
    values["note"] = json!("new");
    let before = operator.calls().len();
    env.secret("other", values).await;
    let mut change = other;
    change["auth"] = json!({ "image": "supabase/gotrue:v9" });
    env.project("shop", change).await;
    env.running("shop").await;
    let read = async || operator.calls()[before..].contains(&"GET secrets other ".to_owned());
    env.wait().eventually("the Secret to be read", read).await;
}

#[tokio::test]
async fn a_component_that_fails_lets_the_database_be_asked() {
    let env = TestEnv::new().await;
    let proxy = env.proxy().await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    proxy.cut(Cut::Refuse).await;
    // A pod is not ready, as it would be without its database. Without a check, the operator would trust the cache for
    // minutes.
    let fail = json!({ "status": { "readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 1 } });
    let is_noticed = async || {
        let deployments = env.api::<Deployment>();
        let (params, patch) = (PatchParams::default(), Patch::Merge(&fail));
        deployments
            .patch_status("shop-auth", &params, &patch)
            .await
            .unwrap();
        let project: SupabaseProject = env.get("shop").await;
        condition(&project, "PostgreSQLConnected").is_some_and(|(status, _)| status == "False")
    };
    env.wait().eventually("the loss to be noticed", is_noticed).await;
}
