//! Values that `extraEnv` takes from other objects: pods follow them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::test_env::TestEnv;

fn variable(kind: &str) -> Value {
    json!({ "name": "MORE", "valueFrom": { kind: { "name": "mine", "key": "more" } } })
}

async fn config_map(env: &TestEnv, value: &str) {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "mine" },
        "data": { "more": value, "less": value },
    });
    env.apply::<ConfigMap>("mine", &map).await;
}

async fn generation(env: &TestEnv, name: &str) -> i64 {
    let deployment = env.api::<Deployment>().get(name).await.unwrap();
    deployment.metadata.generation.unwrap()
}

/// Waits until the Deployment was written again, and returns which others were, too.
async fn roll(env: &TestEnv, name: &str, before: i64, others: &[(String, i64)]) -> Vec<String> {
    let is_rolled = |deployment: &Deployment| deployment.metadata.generation > Some(before);
    env.wait().until(&env.api::<Deployment>(), name, is_rolled).await;
    env.running("shop").await;
    let mut rolled = Vec::new();
    for (other, before) in others {
        if generation(env, other).await > *before {
            rolled.push(other.clone());
        }
    }
    rolled
}

async fn all(env: &TestEnv) -> Vec<(String, i64)> {
    let all = env
        .api::<Deployment>()
        .list(&ListParams::default())
        .await
        .unwrap();
    all.into_iter()
        .map(|deployment| {
            (
                deployment.metadata.name.unwrap(),
                deployment.metadata.generation.unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_secret_or_a_config_map_that_changes_rolls_the_pods_that_take_from_it() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.secret("mine", json!({ "more": "one" })).await;
    config_map(&env, "one").await;
    let spec = json!({
        "meta": { "extraEnv": [variable("secretKeyRef")] },
        "studio": { "extraEnv": [variable("configMapKeyRef")] },
    });
    env.project("shop", spec).await;
    env.running("shop").await;

    let before = all(&env).await;
    env.secret("mine", json!({ "more": "two" })).await;
    let meta = before.iter().find(|(name, _)| name == "shop-meta").unwrap().1;
    assert_eq!(roll(&env, "shop-meta", meta, &before).await, ["shop-meta"]);

    let before = all(&env).await;
    config_map(&env, "two").await;
    let studio = before.iter().find(|(name, _)| name == "shop-studio").unwrap().1;
    assert_eq!(roll(&env, "shop-studio", studio, &before).await, ["shop-studio"]);
}

/// The pod reports that it waits; the creation of the object is noticed.
#[tokio::test]
async fn what_is_not_there_yet_holds_nothing_up() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let spec = json!({ "meta": { "extraEnv": [variable("secretKeyRef"), variable("configMapKeyRef")] } });
    env.project("shop", spec).await;
    env.running("shop").await;
    let before = all(&env).await;
    let meta = before.iter().find(|(name, _)| name == "shop-meta").unwrap().1;
    config_map(&env, "one").await;
    assert_eq!(roll(&env, "shop-meta", meta, &before).await, ["shop-meta"]);
}

/// All namespaces share the operator's memory.
#[tokio::test]
async fn a_project_that_names_too_much_is_refused_and_continues_with_less() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let large = "x".repeat(900_000);
    let mut variables = Vec::new();
    for number in 0..10 {
        let name = format!("large-{number}");
        env.secret(&name, json!({ "more": large })).await;
        variables.push(json!({
            "name": format!("MORE_{number}"), "valueFrom": { "secretKeyRef": { "name": name, "key": "more" } },
        }));
    }
    env.project("shop", json!({ "meta": { "extraEnv": variables } }))
        .await;
    let says = "Dependency validation failed: the Secrets and ConfigMaps that the spec names hold more than 8 MiB, which is \
                more than the operator reads for one project: name smaller ones";
    env.says("shop", says).await;
    env.project("shop", json!({ "meta": { "extraEnv": variables[..5] } }))
        .await;
    env.running("shop").await;
}
