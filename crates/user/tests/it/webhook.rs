//! The webhook between `kubectl apply` and the API server: the controller's own rules, and one object for each role.

use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_kernel::Scope;
use stanchion_kernel::admission::FailurePolicy;
use stanchion_testenv::ServedWebhooks;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, any, role_name};

async fn serve(env: &TestEnv) -> ServedWebhooks {
    let scopes = [Scope::Namespace(env.namespace.clone())];
    let webhooks = stanchion_user::webhooks(&env.client, &scopes);
    env.serve_webhooks(webhooks, FailurePolicy::Fail).await
}

async fn apply(env: &TestEnv, name: &str, spec: &Value) -> Result<(), String> {
    let user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name }, "spec": spec,
    });
    let applied = env.try_apply::<PostgresUser>(name, &user).await;
    applied.map(drop).map_err(|error| error.to_string())
}

fn spec(username: &str) -> Value {
    json!({ "username": username, "database": "app", "passwordSecretRef": { "name": "s" } })
}

/// C34 to C40 beyond what a schema can check; and two objects for one role are refused.
#[tokio::test]
async fn the_webhook_rejects_invalid_objects_with_a_reason() {
    let env = TestEnv::new(any()).await;
    let (role, wrong) = (
        role_name(),
        json!({ "name": "c", "template": { "k": "{{ .Nothing }}" } }),
    );
    let mut invalid = spec(&role);
    invalid["credentialsSecret"] = wrong;
    // Accepted before the webhook was registered.
    apply(&env, "legacy", &invalid).await.unwrap();
    apply(&env, "first", &spec("taken")).await.unwrap();
    let served = serve(&env).await;

    invalid["username"] = json!("another");
    wait::eventually(WAIT_TIMEOUT, "the webhook to be asked", async || {
        match apply(&env, "second", &invalid).await {
            Err(refused) if refused.contains("credentialsSecret.template.k") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let refused = apply(&env, "second", &spec("taken")).await.unwrap_err();
    let owner = format!(
        "role \"taken\" belongs to PostgresUser {}/first already",
        env.namespace
    );
    assert!(refused.contains(&owner), "{refused}");
    let mut elsewhere = spec("taken");
    elsewhere["instanceRef"] = json!({ "name": "other" });
    apply(&env, "second", &elsewhere).await.unwrap();

    // An existing error does not block other changes.
    env.annotate("legacy", "a", "b").await;
    env.patch("legacy", json!({ "spec": { "deletionPolicy": "Retain" } }))
        .await;
    // C39: the webhook is not called for deletions, also not if its server is gone.
    env.patch("first", json!({ "metadata": { "finalizers": ["test.io/hold"] } }))
        .await;
    env.delete("first").await;
    env.patch("first", json!({ "metadata": { "finalizers": null } }))
        .await;
    env.gone("first").await;
    apply(&env, "third", &spec("taken")).await.unwrap();
    served.unregister().await;
}
