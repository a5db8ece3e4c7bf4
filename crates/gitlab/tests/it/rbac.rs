//! The operator's RBAC rules: sufficient, and no more.

use serde_json::json;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::GitlabController;
use stanchion_kernel::driver::rules;
use stanchion_kernel::rbac::{Rule, merge};
use stanchion_testkit::cluster::Grant;
use stanchion_testkit::faults::Faults;

use crate::test_env::TestEnv;

/// The operator's rules as `stanchion rbac` prints them for one namespace.
pub(crate) fn grants(env: &TestEnv) -> Vec<Grant> {
    let (wide, narrow): (Vec<Rule>, Vec<Rule>) = rules::<GitlabController>()
        .into_iter()
        .partition(|rule| rule.cluster_wide);
    vec![
        Grant::Everywhere(merge(&wide)),
        Grant::In(env.namespace.clone(), merge(&narrow)),
    ]
}

/// The whole life of an instance without one 403, and without a write to objects of others.
#[tokio::test]
async fn the_rbac_rules_are_sufficient_and_used() {
    let env = TestEnv::new().await;
    let account = env.cluster.user(&env.namespace, "operator", &grants(&env)).await;
    let audit = env.cluster.audit();
    let _operator = env.operator_as(account.config().await, &Faults::new()).await;
    env.create_provided_secrets().await;
    env.secret("license", json!({ "license": "x" })).await;
    let managed = json!({
        "edition": "ee", "licenseSecret": "license", "elasticsearch": { "managed": true },
        "postgres": { "managed": true, "credentialsSecret": null },
        "redis": { "managed": true, "topology": "ha", "credentialsSecret": null },
    });
    env.instance("managed", managed).await;
    env.shows("managed", Phase::Provisioning, "PostgresProvisioning")
        .await;
    env.instance("shop", json!({})).await;
    env.release("shop").await;
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;
    for name in ["shop", "managed"] {
        env.delete(name).await;
        env.wait().gone(&env.instances(), name).await;
    }
    let requests = audit.requests().await.of_user(account.name());
    assert!(requests.count() > 0);
    assert_eq!(requests.clone().forbidden().list(), []);
    for write in requests.writes().list() {
        let (verb, name) = (write.verb.as_str(), write.name.as_str());
        let ours = match write.resource.as_str() {
            "gitlabinstances" | "configmaps" | "helmrepositories" | "perconapgclusters"
            | "redisreplications" | "redissentinels" | "elasticsearches" => verb == "patch",
            "helmreleases" => ["patch", "delete"].contains(&verb),
            "serviceaccounts" | "rolebindings" => {
                name.ends_with("-gitlab-release") && ["patch", "delete"].contains(&verb)
            }
            "secrets" => name.ends_with("-storage") || name == "managed-redis-auth",
            "events" => ["create", "patch"].contains(&verb),
            _ => false,
        };
        assert!(ours, "{write:?}");
    }
}

#[test]
fn the_rbac_rules_are_minimal() {
    for rule in rules::<GitlabController>() {
        let words = rule
            .resources
            .iter()
            .map(String::as_str)
            .chain(rule.verbs.iter().copied());
        assert!(
            words.chain([rule.group.as_ref()]).all(|word| !word.contains('*')),
            "{rule:?}"
        );
        let may_delete = ["secrets", "helmreleases", "serviceaccounts", "rolebindings"];
        if rule.verbs.contains(&"delete") {
            assert!(
                rule.resources
                    .iter()
                    .all(|name| may_delete.contains(&name.as_str())),
                "{rule:?}"
            );
        }
        if rule.cluster_wide {
            assert!(
                rule.verbs
                    .iter()
                    .all(|verb| ["get", "list", "watch"].contains(verb)),
                "{rule:?}"
            );
        }
    }
}
