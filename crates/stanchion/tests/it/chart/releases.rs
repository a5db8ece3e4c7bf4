//! Several releases on one cluster, and the `ClusterRole` that each `GitlabInstance` refers to.

use std::path::Path;

use serde_json::Value;
use stanchion_testkit::cluster::Cluster;

use super::{chart, helm, kubectl, of_kind, run, template};

const ROLE: &str = "stanchion:gitlab-release";

/// The options of every release but the first.
const FURTHER: &str = "crds.enabled=false,rbac.releaseRole=false,namespaces={team-b}";

/// The role in what the chart renders.
fn role(objects: &[Value]) -> Option<&Value> {
    let roles = of_kind(objects, "ClusterRole");
    roles.into_iter().find(|role| role["metadata"]["name"] == ROLE)
}

#[test]
fn the_role_of_the_releases_of_gitlab_stays_as_the_crds_do() {
    let Some(helm) = helm("release_role") else { return };
    let policy = |settings: &str| {
        let objects = template(&helm, &["--set", settings]);
        let role = role(&objects).map(|role| &role["metadata"]["annotations"]["helm.sh/resource-policy"]);
        role.map(|policy| policy.as_str().unwrap_or("none").to_owned())
    };
    assert_eq!(policy("replicas=2").as_deref(), Some("keep"));
    assert_eq!(policy("crds.keep=false").as_deref(), Some("none"));
    for without in ["controllers.gitlab=false", "rbac.create=false", FURTHER] {
        assert_eq!(policy(without), None, "{without}");
    }
}

/// Without its own role, a further release may still bind that of the first one.
#[test]
fn a_further_release_may_bind_the_role_of_the_first() {
    let Some(helm) = helm("further_release") else {
        return;
    };
    let objects = template(&helm, &["--set", FURTHER]);
    // In the namespaces that it watches: the operator creates the bindings there.
    let namespaced = of_kind(&objects, "Role").into_iter();
    let rules = namespaced
        .filter(|role| role["metadata"]["namespace"] == "team-b")
        .flat_map(|role| role["rules"].as_array().unwrap());
    let mut bind = rules.filter(|rule| rule["verbs"] == serde_json::json!(["bind"]));
    assert!(bind.any(|rule| rule["resourceNames"] == serde_json::json!([ROLE])));
}

fn on(cluster: &Cluster, helm: &Path, namespace: &str, words: &[&str]) -> Result<String, String> {
    let kubeconfig = cluster.kubeconfig_path();
    let place = ["--kubeconfig", kubeconfig.to_str().unwrap(), "-n", namespace];
    run(helm, &[words, &place[..]].concat())
}

#[tokio::test]
async fn two_releases_share_a_cluster_and_the_role_outlives_both() {
    let Some(helm) = helm("two_releases") else { return };
    let cluster = Cluster::start().await;
    for name in ["ops-a", "ops-b", "team-b"] {
        let namespace = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        cluster.apply(&namespace, name).await;
    }
    let chart = chart();
    let chart = chart.to_str().unwrap();
    let role = async || kubectl(&cluster).run(&["get", "clusterrole", ROLE]).await;
    on(&cluster, &helm, "ops-a", &["install", "a", chart]).unwrap();
    role().await.unwrap();
    // Helm does not install over objects of another release.
    let same = ["install", "b", chart, "--set", "crds.enabled=false"];
    let refused = on(&cluster, &helm, "ops-b", &same).unwrap_err();
    assert!(refused.contains(ROLE), "{refused}");
    let further = ["install", "b", chart, "--set", FURTHER];
    on(&cluster, &helm, "ops-b", &further).unwrap();

    on(&cluster, &helm, "ops-b", &["uninstall", "b"]).unwrap();
    role().await.unwrap();
    on(&cluster, &helm, "ops-a", &["uninstall", "a"]).unwrap();
    role().await.unwrap();
    // The same release finds its role again.
    on(&cluster, &helm, "ops-a", &["install", "a", chart]).unwrap();
}
