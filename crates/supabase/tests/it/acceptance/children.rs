//! The children of a project.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::ResourceExt as _;
use serde_json::json;

use super::{COMPONENTS, labels, shop};
use crate::test_env::{TestEnv, container};

#[tokio::test]
async fn a08_a_deployment_and_a_service_each_with_the_known_ports() {
    let (env, operator, _) = shop(json!({})).await;
    let deployments = env.all::<Deployment>().await;
    let services = env.all::<Service>().await;
    let expected: Vec<String> = COMPONENTS
        .iter()
        .map(|(name, _)| format!("shop-{name}"))
        .collect();
    assert_eq!(deployments.keys().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(services.keys().cloned().collect::<Vec<_>>(), expected);
    for (name, ports) in [
        ("auth", &[9999][..]),
        ("kong", &[8000, 8443]),
        ("meta", &[8080]),
        ("postgrest", &[3000]),
        ("realtime", &[4000]),
        ("storage", &[5000]),
        ("studio", &[3000]),
    ] {
        let child = format!("shop-{name}");
        let pod = container(&deployments[&child]);
        assert_eq!(pod.name, name);
        let open: Vec<i32> = pod
            .ports
            .iter()
            .flatten()
            .map(|port| port.container_port)
            .collect();
        assert!(ports.iter().all(|port| open.contains(port)), "{name}: {open:?}");
        assert!(!open.contains(&8001), "Kong's admin API is closed");
        let service = services[&child].spec.as_ref().unwrap();
        let reached: Vec<i32> = service.ports.iter().flatten().map(|port| port.port).collect();
        assert_eq!(reached, ports, "{name}");
        assert_eq!(service.type_.as_deref(), Some("ClusterIP"));
    }
    env.get::<ConfigMap>("shop-kong-config").await;
    env.get::<Secret>("shop-jwt").await;
    let calls = operator.calls();
    assert!(calls.len() <= 25, "{} calls: {calls:#?}", calls.len());
}

#[tokio::test]
async fn a09_five_labels_are_on_every_child_and_select_its_pods() {
    let (env, _operator, _) = shop(json!({})).await;
    for (name, component) in COMPONENTS {
        let (child, expected) = (format!("shop-{name}"), labels("shop", name, component));
        let deployment: Deployment = env.get(&child).await;
        let service: Service = env.get(&child).await;
        let spec = deployment.spec.as_ref().unwrap();
        assert_eq!(json!(deployment.labels()), expected, "{child}");
        assert_eq!(json!(service.labels()), expected, "{child}");
        assert_eq!(
            json!(spec.selector),
            json!({ "matchLabels": expected }),
            "{child}"
        );
        let template = spec.template.metadata.as_ref().unwrap();
        assert_eq!(json!(template.labels), expected, "{child}");
        assert_eq!(
            json!(service.spec.as_ref().unwrap().selector),
            expected,
            "{child}"
        );
    }
    let map: ConfigMap = env.get("shop-kong-config").await;
    assert_eq!(json!(map.labels()), labels("shop", "kong", "api-gateway"));
}

#[tokio::test]
async fn a22_what_is_deleted_or_changed_by_hand_is_mended() {
    let (env, _operator, _) = shop(json!({})).await;
    let (deployments, services) = (env.api::<Deployment>(), env.api::<Service>());
    let (auth, studio) = (
        services.get("shop-auth").await.unwrap().uid(),
        deployments.get("shop-studio").await.unwrap().uid(),
    );
    env.delete::<Service>("shop-auth").await;
    env.delete::<Deployment>("shop-studio").await;
    let is_new = |service: &Service| service.uid() != auth;
    env.wait().until(&services, "shop-auth", is_new).await;
    let is_new = |deployment: &Deployment| deployment.uid() != studio;
    env.wait().until(&deployments, "shop-studio", is_new).await;

    env.patch::<Deployment>("shop-meta", json!({ "spec": { "replicas": 5 } }))
        .await;
    let is_one = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(1);
    env.wait().until(&deployments, "shop-meta", is_one).await;
    let label = "app.kubernetes.io/name";
    env.patch::<Service>(
        "shop-kong",
        json!({ "metadata": { "labels": { label: null } }, "spec": { "selector": { label: "other" } } }),
    )
    .await;
    let is_mended = |service: &Service| {
        let selector = service.spec.as_ref().unwrap().selector.as_ref().unwrap();
        service.labels().get(label).is_some_and(|name| name == "kong") && selector[label] == "kong"
    };
    env.wait().until(&services, "shop-kong", is_mended).await;
    env.running("shop").await;
}

#[tokio::test]
async fn a23_two_projects_in_one_namespace_have_nothing_in_common() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.db_env
        .server
        .execute("postgres", "CREATE DATABASE other")
        .await;
    env.secret("other-db", env.secret_for("other")).await;
    env.project("shop", json!({})).await;
    env.project(
        "other",
        json!({ "database": { "secretRef": { "name": "other-db" } } }),
    )
    .await;
    env.running("shop").await;
    env.running("other").await;
    let deployments = env.all::<Deployment>().await;
    assert_eq!(deployments.len(), 2 * COMPONENTS.len());
    for (name, deployment) in &deployments {
        let (project, _) = name.split_once('-').unwrap();
        let [owner] = deployment.owner_references() else {
            panic!("{name} has one owner")
        };
        let selector = deployment.spec.as_ref().unwrap().selector.match_labels.as_ref();
        assert_eq!(owner.name, project);
        assert_eq!(selector.unwrap()["app.kubernetes.io/instance"], project);
    }
    // No login, password or key is shared by both.
    let (shop, other) = (env.values("shop-jwt").await, env.values("other-jwt").await);
    let common: BTreeSet<_> = shop
        .iter()
        .filter(|(key, value)| other.get(*key) == Some(value))
        .map(|(key, _)| key.as_str())
        .collect();
    assert_eq!(common, BTreeSet::from(["dashboard-username"]));
    let logins = [env.pod("shop-postgrest").await, env.pod("other-postgrest").await];
    assert_ne!(logins[0].value("PGRST_DB_URI"), logins[1].value("PGRST_DB_URI"));
}
