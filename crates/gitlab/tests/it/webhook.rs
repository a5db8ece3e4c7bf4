//! What the schema cannot express is refused when an instance is applied, too.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_gitlab::GitlabController;
use stanchion_kernel::admission::{FailurePolicy, validation};

use crate::test_env::TestEnv;

/// The message with which the API server refuses an instance, if it does. Nothing is stored.
async fn refusal(env: &TestEnv, name: &str, more: &Value) -> Option<String> {
    let mut instance = json!({
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "metadata": { "name": name },
        "spec": {
            "domains": { "gitlab": "git.example.com" },
            "postgres": { "credentialsSecret": "pg" }, "redis": { "credentialsSecret": "redis" },
        },
    });
    json_patch::merge(&mut instance["spec"], more);
    let params = PatchParams::apply("test").dry_run();
    let applied = env
        .instances()
        .patch(name, &params, &Patch::Apply(&instance))
        .await;
    applied.err().map(|error| error.to_string())
}

#[tokio::test]
async fn what_the_operator_would_refuse_is_refused_when_it_is_applied() {
    let env = TestEnv::new().await;
    let name = "a-name-of-more-than-forty-characters-is-long";
    assert_eq!(
        refusal(&env, name, &json!({})).await,
        None,
        "the schema accepts it"
    );
    let served = [validation::<GitlabController>()];
    let _served = env.serve_webhooks(served, FailurePolicy::Fail).await;
    env.wait()
        .eventually("the webhook to be asked", async || {
            let refused = refusal(&env, name, &json!({})).await;
            refused.is_some_and(|words| words.contains("at most 40"))
        })
        .await;
    let name = "a-name-of-thirty-seven-characters-now";
    let searched = json!({
        "edition": "ee", "licenseSecret": "license", "elasticsearch": { "managed": true },
    });
    let refused = refusal(&env, name, &searched).await;
    assert!(
        refused.as_ref().is_some_and(|words| words.contains("at most 33")),
        "{refused:?}"
    );
    let redis = json!({ "managed": true, "topology": "ha", "credentialsSecret": null });
    assert_eq!(refusal(&env, name, &json!({ "redis": redis })).await, None);
    let name = "a-name-of-thirty-eight-characters-here";
    for (most, more) in [
        (37, json!({ "redis": redis })),
        (37, json!({ "backupSchedule": "30 2 * * *" })),
        (
            34,
            json!({ "postgres": { "managed": true, "credentialsSecret": null } }),
        ),
    ] {
        let refused = refusal(&env, name, &more).await;
        let words = format!("at most {most} ");
        assert!(
            refused.as_ref().is_some_and(|it| it.contains(&words)),
            "{refused:?}"
        );
    }
    let searched = json!({ "elasticsearch": { "managed": true } });
    assert_eq!(refusal(&env, name, &searched).await, None, "none is made for ce");
    let without = json!({ "postgres": { "credentialsSecret": null } });
    let refused = refusal(&env, name, &without).await;
    assert!(
        refused
            .as_ref()
            .is_some_and(|words| words.contains("postgres has no source")),
        "{refused:?}"
    );
}
