//! `stanchion rbac`: sufficient, and minimal.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use stanchion_api::user::PostgresUser;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::{port, unique, wait};

use crate::DEADLINE;
use crate::operator::{Operator, stdout};
use crate::users::{UrlFile, postgres_user, ready};

const ACCOUNT: &str = "stanchion";

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}"))
}

fn rules(document: &Value) -> Vec<PolicyRule> {
    serde_json::from_value(document["rules"].clone()).unwrap_or_default()
}

#[test]
fn no_rule_is_a_wildcard_and_none_makes_or_deletes_what_is_the_users() {
    let groups: Vec<String> = stanchion_api::crds()
        .into_iter()
        .map(|crd| crd.spec.group)
        .collect();
    let all: Vec<PolicyRule> = documents(&stdout(["rbac"])).iter().flat_map(rules).collect();
    assert!(all.len() > 3);
    for rule in all {
        let resources = rule.resources.clone().unwrap_or_default();
        for words in [
            &rule.verbs,
            &resources,
            &rule.api_groups.clone().unwrap_or_default(),
        ] {
            assert!(!words.iter().any(|word| word.contains('*')), "{rule:?}");
        }
        // Plans belong to the operator: it creates them, and deletes the oldest.
        let is_the_users = !resources.iter().all(|resource| resource == "postgrespolicyplans");
        let of_our_kinds = rule
            .api_groups
            .iter()
            .flatten()
            .any(|group| groups.contains(group));
        if of_our_kinds && is_the_users {
            let forbidden = ["create", "delete", "deletecollection"];
            assert!(
                !rule.verbs.iter().any(|verb| forbidden.contains(&verb.as_str())),
                "{rule:?}"
            );
        }
    }
}

#[test]
fn for_some_namespaces_nothing_namespaced_is_granted_everywhere() {
    let everywhere = documents(&stdout(["rbac"]));
    let narrow = documents(&stdout([
        "rbac",
        "--namespace",
        "a",
        "--namespace",
        "b",
        "--namespace",
        "a",
    ]));
    let namespaces = |documents: &[Value], kind: &str| -> Vec<String> {
        let of_kind = documents.iter().filter(|document| document["kind"] == kind);
        of_kind
            .map(|document| {
                document["metadata"]["namespace"]
                    .as_str()
                    .unwrap_or("")
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(namespaces(&everywhere, "Role"), ["stanchion-system"]);
    assert_eq!(namespaces(&narrow, "Role"), ["stanchion-system", "a", "b"]);
    assert_eq!(namespaces(&narrow, "RoleBinding"), ["stanchion-system", "a", "b"]);
    // A role that is only shipped is bound in the namespaces that need it.
    let bound: Vec<&Value> = narrow
        .iter()
        .filter(|document| document["kind"] == "ClusterRoleBinding")
        .map(|binding| &binding["roleRef"]["name"])
        .collect();
    let roles = narrow.iter().filter(|document| {
        document["kind"] == "ClusterRole" && bound.contains(&&document["metadata"]["name"])
    });
    for document in roles {
        for rule in rules(document) {
            let resources = rule.resources.unwrap_or_default();
            assert!(
                !resources
                    .iter()
                    .any(|name| name == "secrets" || name.starts_with("postgres")),
                "{resources:?}"
            );
        }
    }
}

/// F20: a disabled controller needs no permissions. Each row is a controller and what only it may access.
#[test]
fn a_controller_that_is_off_has_no_permissions() {
    let owned = [
        ("user", "postgresusers"),
        ("supabase", "deployments"),
        ("policy", "postgrespolicyplans"),
        ("gitlab", "helmreleases"),
    ];
    for (controller, own) in owned {
        let documents = documents(&stdout(["rbac", "--controllers", controller]));
        // The operator may bind the role of GitLab's releases, but does not have it itself.
        let is_own = |document: &&Value| document["metadata"]["name"] != "stanchion:gitlab-release";
        let granted: Vec<String> = documents
            .iter()
            .filter(is_own)
            .flat_map(rules)
            .flat_map(|rule| rule.resources.unwrap_or_default())
            .collect();
        for (other, resource) in owned {
            let is_granted = granted.iter().any(|granted| granted == resource);
            assert_eq!(
                is_granted,
                resource == own,
                "{controller} and what is {other}'s: {granted:?}"
            );
        }
    }
}

/// Creates and removes a login, and checks that no request was forbidden.
pub(crate) async fn works_without_a_403(cluster: &Cluster, namespace: &str, rbac: &[&str], run: &[&str]) {
    let account = format!("{namespace}/{ACCOUNT}");
    let arguments = ["rbac", "--service-account", &account];
    let manifest = stdout(arguments.iter().chain(rbac));
    cluster.apply(&manifest, namespace).await;
    let user = cluster.log_in(namespace, ACCOUNT).await;
    let audit = cluster.audit();

    let database = Database::of(Version::V15).await;
    let file = UrlFile::new(&database.url());
    let webhooks = port::free();
    let listen = format!("--webhook-addr=127.0.0.1:{webhooks}");
    let reached = format!("--webhook-url=https://127.0.0.1:{webhooks}");
    let mut arguments = vec![
        "--leader-elect",
        "--operator-namespace",
        namespace,
        &listen,
        &reached,
    ];
    arguments.extend(file.arguments());
    arguments.extend(run);
    let operator = Operator::start(user.kubeconfig_path(), &arguments);
    operator.ready().await;
    operator
        .wait_for("the webhooks to be registered", async || {
            operator.log().contains("webhooks registered")
        })
        .await;
    let mut wrong = postgres_user("wrong", "nobody", &database);
    wrong["spec"]["role"] = json!({ "parameters": { "no name": "1" } });
    let users: Api<PostgresUser> = Api::namespaced(cluster.client().await, namespace);
    let wrong: PostgresUser = serde_json::from_value(wrong).unwrap();
    // The API server reads a new configuration a moment after it was written.
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    operator
        .wait_for("the API server to ask the webhooks", async || {
            users.create(&dry_run, &wrong).await.is_err()
        })
        .await;
    let refused = users.create(&PostParams::default(), &wrong).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("is not the name of a parameter"), "{refused}");

    let role = unique::name("u");
    cluster
        .apply(&postgres_user("app", &role, &database).to_string(), namespace)
        .await;
    ready(&operator, cluster, namespace, "app").await;
    wait::deleted(&users, "app", DEADLINE).await;
    let log = operator.log();
    operator.stop().await;

    let requests = audit.requests().await.of_user(user.name());
    assert!(requests.clone().writes().count() > 0, "{requests:#?}");
    let forbidden = requests.forbidden();
    assert_eq!(forbidden.count(), 0, "{forbidden:#?}\n{log}");
    for verb in ["create", "delete"] {
        let may = cluster
            .may(
                user.name(),
                verb,
                "db.example.com",
                "postgresusers",
                Some(namespace),
            )
            .await;
        assert!(!may, "it may {verb}");
    }
}

#[tokio::test]
async fn the_permissions_for_a_namespace_are_enough_for_it() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("rights").await;
    let scope = ["--namespace", namespace.as_str()];
    works_without_a_403(cluster, &namespace, &scope, &scope).await;
}

/// C43, A23: `/readyz` names a missing permission, and not only the log; with the permission the operator becomes ready
/// by itself.
#[tokio::test]
async fn a_missing_right_is_named_by_readyz() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("unready").await;
    let account = format!("{namespace}/{ACCOUNT}");
    // Only one: permissions that several share are one rule.
    let only = ["--controllers", "user"];
    let for_it = ["--service-account", &account, "--namespace", &namespace];
    let whole = stdout([&["rbac"], &only[..], &for_it[..]].concat());
    let mut narrow = documents(&whole);
    for document in &mut narrow {
        if let Some(rules) = document.get_mut("rules").and_then(Value::as_array_mut) {
            let reads = |verbs: &Value| verbs.as_array().is_some_and(|all| all.contains(&json!("watch")));
            rules.retain(|rule| rule["resources"] != json!(["secrets"]) || !reads(&rule["verbs"]));
        }
    }
    let narrow: Vec<String> = narrow.iter().map(ToString::to_string).collect();
    cluster.apply(&narrow.join("\n---\n"), &namespace).await;
    let user = cluster.log_in(&namespace, ACCOUNT).await;
    let arguments = ["--namespace", &namespace, "--operator-namespace", &namespace];
    let arguments = [&arguments[..], &only, &["--no-webhooks"]].concat();
    let operator = Operator::start(user.kubeconfig_path(), &arguments);
    operator
        .wait_for("the missing right", async || {
            match operator.get("health", "/readyz").await {
                Some((503, said)) if said.contains("secrets") && said.contains("forbidden") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    cluster.apply(&whole, &namespace).await;
    operator.ready().await;
    operator.stop().await;
}
