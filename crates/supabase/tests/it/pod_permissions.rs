//! The operator creates pods with its own permissions: it must not give users more than the namespace does.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;

use crate::test_env::{TestEnv, condition};

fn says(project: &SupabaseProject, words: &str) -> bool {
    let message = project
        .status
        .as_ref()
        .and_then(|status| status.message.as_deref());
    message.is_some_and(|message| message.contains(words))
}

/// A Deployment and a Service with a component's names, created by somebody else and without a controller.
#[tokio::test]
async fn unowned_children_are_left_alone_unless_they_may_be_adopted() {
    let env = TestEnv::new().await;
    let labels = json!({ "app": "theirs" });
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "shop-auth" },
        "spec": { "selector": labels, "ports": [{ "port": 1 }] },
    }))
    .unwrap();
    let services = env.api::<Service>();
    let before = services.create(&PostParams::default(), &service).await.unwrap();
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    let refused = |project: &SupabaseProject| {
        says(
            project,
            "Service shop-auth exists and does not belong to SupabaseProject shop",
        ) && says(project, "stanchion.dev/adopt-by=shop")
    };
    env.until("shop", refused).await;
    let found = services.get("shop-auth").await.unwrap();
    assert_eq!(
        found.resource_version(),
        before.resource_version(),
        "nothing was written"
    );

    let consent = json!({ "metadata": { "annotations": { "stanchion.dev/adopt-by": "shop" } } });
    env.patch::<Service>("shop-auth", consent).await;
    env.running("shop").await;
    let adopted = services.get("shop-auth").await.unwrap();
    assert_eq!(adopted.uid(), before.uid());
    assert_eq!(adopted.owner_references()[0].name, "shop");
}

#[tokio::test]
async fn what_the_namespace_forbids_is_refused() {
    let env = TestEnv::new().await;
    let label =
        |level: &str| json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": level } } });
    let namespaces: Api<Namespace> = Api::all(env.client.clone());
    let enforce = async |level: &str| {
        let params = PatchParams::default();
        namespaces
            .patch(&env.namespace, &params, &Patch::Merge(label(level)))
            .await
            .unwrap();
    };
    enforce("restricted").await;
    let _operator = env.operator().await;
    let rooted = json!({ "auth": { "securityContext": { "runAsUser": 0 } } });
    env.project("shop", rooted).await;
    let refused = |project: &SupabaseProject| says(project, "spec.auth.securityContext: it runs as root");
    let project = env.until("shop", refused).await;
    assert_eq!(condition(&project, "Ready").unwrap().0, "False");
    assert!(env.all::<Deployment>().await.is_empty());
    // Settings within the level are allowed.
    env.project(
        "shop",
        json!({ "auth": { "securityContext": { "runAsUser": 7 } } }),
    )
    .await;
    env.running("shop").await;
    // And so is everything if no level is enforced.
    enforce("privileged").await;
    env.project(
        "shop",
        json!({ "auth": { "securityContext": { "runAsUser": 0 } } }),
    )
    .await;
    env.running("shop").await;
}

#[tokio::test]
async fn images_are_those_that_the_administrator_allows() {
    let mut env = TestEnv::new().await;
    env.allowed_images = vec!["mirror.example.com/".to_owned()];
    let _operator = env.operator().await;
    env.project("shop", json!({ "auth": { "image": "evil.example.com/miner:1" } }))
        .await;
    let refused = |project: &SupabaseProject| {
        says(project, "spec.auth.image: \"evil.example.com/miner:1\"") && says(project, "mirror.example.com/")
    };
    env.until("shop", refused).await;
    assert!(env.all::<Deployment>().await.is_empty());
    env.project(
        "shop",
        json!({ "auth": { "image": "mirror.example.com/gotrue:1" } }),
    )
    .await;
    env.running("shop").await;
}

/// A removed `ServiceAccount` is removed: the deprecated alias of the field does not restore it.
#[tokio::test]
async fn a_service_account_that_is_taken_out_goes() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", json!({ "auth": { "serviceAccountName": "special" } }))
        .await;
    env.running("shop").await;
    let account = |deployment: &Deployment| -> Vec<Value> {
        let pod = serde_json::to_value(&deployment.spec.as_ref().unwrap().template.spec).unwrap();
        ["serviceAccountName", "serviceAccount"]
            .iter()
            .filter_map(|field| pod.get(field).cloned())
            .collect()
    };
    let deployment: Deployment = env.get("shop-auth").await;
    assert_eq!(account(&deployment), ["special", "special"]);
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let deployment: Deployment = env.get("shop-auth").await;
    assert_eq!(account(&deployment), Vec::<Value>::new());
}
