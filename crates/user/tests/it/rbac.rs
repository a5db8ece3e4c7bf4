//! The operator's RBAC rules: sufficient, and no more.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::ResourceExt;
use serde_json::json;
use stanchion_kernel::driver::rules;
use stanchion_kernel::rbac::{Rule, merge};
use stanchion_testkit::cluster::{Grant, User};
use stanchion_user::{InstanceController, UserController};

use super::test_env::{How, TestEnv, any, message, role_name};

/// The operator's rules as `stanchion rbac` prints them for one namespace.
fn grants(env: &TestEnv, keep: impl Fn(&Rule) -> bool) -> Vec<Grant> {
    let all = [rules::<UserController>(), rules::<InstanceController>()].concat();
    let (wide, narrow): (Vec<Rule>, Vec<Rule>) =
        all.into_iter().filter(keep).partition(|rule| rule.cluster_wide);
    vec![
        Grant::Everywhere(merge(&wide)),
        Grant::In(env.namespace.clone(), merge(&narrow)),
    ]
}

async fn operator(env: &TestEnv, user: &User) -> super::test_env::Running {
    env.start(How {
        config: user.config().await,
        ..env.how().await
    })
}

/// C42, A23, C24: the whole life of an object without one 403, and without a write to objects of others.
#[tokio::test]
async fn the_rbac_rules_are_sufficient_and_used() {
    let env = TestEnv::new(any()).await;
    let account = env
        .cluster
        .user(&env.namespace, "operator", &grants(&env, |_| true))
        .await;
    let audit = env.cluster.audit();
    let (role, _operator) = (role_name(), operator(&env, &account).await);
    env.instance("main", json!({})).await;
    env.password("alice", "p\n").await;
    let request =
        |name: &str| json!({ "instanceRef": { "name": "main" }, "credentialsSecret": { "name": name } });
    env.user("alice", &role, request("out")).await;
    env.ready("alice").await;
    env.user("alice", &role, request("moved")).await;
    env.ready("alice").await;
    let other = role_name();
    env.user(
        "bob",
        &other,
        json!({ "passwordSecretRef": null, "password": { "generate": {} } }),
    )
    .await;
    env.ready("bob").await;
    env.event("alice", "PasswordTrimmed").await;
    for name in ["alice", "bob"] {
        env.delete(name).await;
        env.gone(name).await;
    }
    let requests = audit.requests().await.of_user(account.name());
    assert!(requests.count() > 0);
    assert_eq!(requests.clone().forbidden().list(), []);
    for write in requests.writes().list() {
        let ours = match write.resource.as_str() {
            "postgresusers" => write.verb == "patch",
            "postgresinstances" => write.verb == "patch" && write.subresource == "status",
            "events" => ["create", "patch"].contains(&write.verb.as_str()),
            "secrets" => ["out", "moved", "bob-credentials"].contains(&write.name.as_str()),
            _ => false,
        };
        assert!(ours, "{write:?}");
    }
}

/// C41: no creation or deletion of users' objects, no wildcard, nothing cluster-wide except for cluster-scoped kinds.
#[tokio::test]
async fn the_rbac_rules_are_minimal() {
    let env = TestEnv::new(any()).await;
    for grant in grants(&env, |_| true) {
        let (rules, cluster_wide): (Vec<PolicyRule>, bool) = match grant {
            Grant::Everywhere(rules) => (rules, true),
            Grant::In(_, rules) => (rules, false),
        };
        for rule in rules {
            let words = [
                rule.api_groups.clone(),
                rule.resources.clone(),
                Some(rule.verbs.clone()),
            ];
            assert!(
                !words
                    .into_iter()
                    .flatten()
                    .flatten()
                    .any(|word| word.contains('*')),
                "{rule:?}"
            );
            let resources = rule.resources.unwrap_or_default();
            if cluster_wide {
                assert_eq!(
                    (resources, rule.verbs),
                    (
                        vec!["namespaces".to_owned()],
                        vec!["get".into(), "list".into(), "watch".into()]
                    )
                );
            } else if resources.iter().any(|name| name.starts_with("postgres")) {
                assert!(
                    !rule
                        .verbs
                        .iter()
                        .any(|verb| ["create", "delete", "deletecollection"].contains(&verb.as_str())),
                    "{resources:?}"
                );
            }
        }
    }
    let account = env
        .cluster
        .user(&env.namespace, "operator", &grants(&env, |_| true))
        .await;
    let asked = [
        ("create", "db.example.com", "postgresusers", true),
        ("delete", "db.example.com", "postgresusers", true),
        ("update", "", "secrets", true),
        ("list", "", "secrets", false),
        ("get", "", "configmaps", true),
        ("create", "", "pods", true),
    ];
    for (verb, group, resource, inside) in asked {
        let place = if inside { env.namespace.as_str() } else { "default" };
        let may = env
            .cluster
            .may(account.name(), verb, group, resource, Some(place))
            .await;
        assert!(!may, "{verb} {resource}");
    }
}

/// C43, A23: a missing RBAC rule is visible to users.
#[tokio::test]
async fn a_missing_permission_is_reported() {
    let env = TestEnv::new(any()).await;
    let no_secrets = |rule: &Rule| !rule.resources.iter().any(|name| name == "secrets");
    let account = env
        .cluster
        .user(&env.namespace, "operator", &grants(&env, no_secrets))
        .await;
    let (role, _operator) = (role_name(), operator(&env, &account).await);
    env.password("alice", "p").await;
    env.user("alice", &role, json!({})).await;
    let user = env
        .until("alice", |user| message(user, "Ready").contains("secrets"))
        .await;
    let said = message(&user, "Ready");
    assert!(said.contains("cannot get resource \"secrets\""), "{said}");
    assert!(!env.has_role(&role).await);
    assert_eq!(user.finalizers(), ["db.example.com/postgresuser"]);
}
