//! A watch without permission is visible, and starts by itself once the permission is granted.

use serde_json::json;
use stanchion_kernel::{driver, rbac};
use stanchion_testkit::cluster::Grant;

use crate::test_env::{TestEnv, Widget, WidgetController, WidgetSpec, settings};

#[tokio::test]
async fn a_forbidden_watch_is_named_and_recovers_when_the_right_is_granted() {
    let env = TestEnv::new("rights").await;
    env.password("mine", "one").await;
    let spec = WidgetSpec {
        size: 1,
        secret_ref: Some("mine".into()),
        ..WidgetSpec::default()
    };
    env.widget("one", spec).await;
    // All permissions that the toy needs, except for Secrets.
    let mut rules = driver::rules::<WidgetController>();
    rules.retain(|rule| rule.resources != ["secrets"]);
    let grants = [Grant::In(env.namespace.clone(), rbac::merge(&rules))];
    let user = env.cluster.user(&env.namespace, "operator", &grants).await;
    let operator = env.operator_with(user.config().await, settings());

    let only_secrets = async || match operator.readiness.missing().as_slice() {
        [(name, why)] if why.contains("403") || why.contains("forbidden") => {
            Some((name.clone(), why.clone()))
        }
        _ => None,
    };
    let (name, why) = operator
        .wait()
        .eventually("the watch to be missing", only_secrets)
        .await;
    assert_eq!(name, format!("watch of secrets in namespace {}", env.namespace));
    assert!(why.contains("secrets is forbidden"), "{why}");
    let widget = env
        .until(&operator, "one", |widget| widget.fails_with("Forbidden"))
        .await;
    let message = &widget.condition("Ready").unwrap().message;
    assert!(
        message.contains("`stanchion rbac` prints what it needs"),
        "{message}"
    );

    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "secrets" },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"] }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "secrets" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "secrets" },
        "subjects": [{ "kind": "ServiceAccount", "name": "operator", "namespace": env.namespace }],
    });
    for right in [role, binding] {
        env.cluster.apply(&right.to_string(), &env.namespace).await;
    }
    operator
        .wait()
        .eventually("the watch", async || operator.readiness.missing().is_empty())
        .await;
    // The widget has not changed, but the watch that now runs reports the Secret that it could not read.
    env.until(&operator, "one", Widget::is_ready).await;
}
