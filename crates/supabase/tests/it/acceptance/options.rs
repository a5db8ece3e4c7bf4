//! Features beyond the original, on a cluster: objects that protect and scale pods, a suspended project, and a failed
//! update.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;

use super::{COMPONENTS, shop};
use crate::test_env::{condition, container};

const GOOD: &str = "supabase/gotrue:v2.196.0";

fn phase(project: &SupabaseProject) -> Option<Phase> {
    let status = project.status.as_ref()?;
    (status.observed_generation == project.metadata.generation).then_some(status.phase)?
}

/// The API server sets the number of pods to one if nobody names it any more.
#[tokio::test]
async fn an_autoscaler_takes_over_the_pods_that_run() {
    let (env, _operator, _) = shop(json!({ "auth": { "replicas": 3 } })).await;
    let scaling = json!({ "auth": { "replicas": 3, "autoscaling": { "minReplicas": 1, "maxReplicas": 5 } } });
    env.project("shop", scaling).await;
    let scaler = |_: &HorizontalPodAutoscaler| true;
    env.wait().until(&env.api(), "shop-auth", scaler).await;
    env.running("shop").await;
    let auth: Deployment = env.get("shop-auth").await;
    assert_eq!(
        auth.spec.unwrap().replicas,
        Some(4),
        "another number shows the new manager"
    );
    env.project("shop", json!({ "auth": { "replicas": 2 } })).await;
    env.running("shop").await;
    let auth: Deployment = env.get("shop-auth").await;
    assert_eq!(auth.spec.unwrap().replicas, Some(2));
}

#[tokio::test]
async fn what_guards_and_scales_pods_comes_and_goes_with_its_field() {
    let more = json!({
        "networkPolicy": { "from": [{ "namespaceSelector": {} }] }, "podDisruptionBudget": { "maxUnavailable": 2 },
        "auth": { "autoscaling": { "minReplicas": 2, "maxReplicas": 5 } },
    });
    let (env, _operator, _) = shop(more).await;
    let policies = env.all::<NetworkPolicy>().await;
    assert!(policies.contains_key("shop") && policies.contains_key("shop-kong"));
    let budgets = env.all::<PodDisruptionBudget>().await;
    let expected: Vec<String> = COMPONENTS.map(|(name, _)| format!("shop-{name}")).into();
    assert_eq!(budgets.keys().cloned().collect::<Vec<_>>(), expected);
    let scalers = env.all::<HorizontalPodAutoscaler>().await;
    let [(name, scaler)] = scalers.iter().collect::<Vec<_>>()[..] else {
        panic!("{scalers:?}")
    };
    assert_eq!(
        (name.as_str(), scaler.spec.as_ref().unwrap().max_replicas),
        ("shop-auth", 5)
    );
    // From now on the autoscaler owns the number of replicas.
    let scale = json!({ "spec": { "replicas": 3 } });
    env.patch::<Deployment>("shop-auth", scale).await;
    env.project("shop", json!({ "auth": { "autoscaling": { "maxReplicas": 6 } } }))
        .await;
    env.running("shop").await;
    let auth: Deployment = env.get("shop-auth").await;
    assert_eq!(auth.spec.unwrap().replicas, Some(3));
    env.wait().gone(&env.api::<NetworkPolicy>(), "shop-kong").await;
    env.wait()
        .gone(&env.api::<PodDisruptionBudget>(), "shop-kong")
        .await;
    env.project("shop", json!({})).await;
    env.wait()
        .gone(&env.api::<HorizontalPodAutoscaler>(), "shop-auth")
        .await;
}

#[tokio::test]
async fn a_suspended_project_is_left_alone_until_it_is_not() {
    let (env, _operator, _) = shop(json!({})).await;
    let more = |suspend| json!({ "suspend": suspend, "auth": { "image": GOOD } });
    let before: Deployment = env.get("shop-auth").await;
    env.project("shop", more(true)).await;
    let says = |project: &SupabaseProject| {
        let message = project
            .status
            .as_ref()
            .and_then(|status| status.message.as_deref());
        message.is_some_and(|message| message.starts_with("suspended"))
    };
    env.until("shop", says).await;
    env.delete::<Deployment>("shop-meta").await;
    // The operator reconciles the next project completely, and has not changed this one.
    env.secret("other", env.secret_for("postgres")).await;
    env.project(
        "other",
        json!({ "database": { "secretRef": { "name": "other" } } }),
    )
    .await;
    env.running("other").await;
    assert!(!env.all::<Deployment>().await.contains_key("shop-meta"));
    let auth: Deployment = env.get("shop-auth").await;
    assert_eq!(auth.metadata.generation, before.metadata.generation);
    env.project("shop", more(false)).await;
    env.running("shop").await;
    let auth: Deployment = env.get("shop-auth").await;
    assert_eq!(container(&auth).image.as_deref(), Some(GOOD));
    env.get::<Deployment>("shop-meta").await;
}

/// The serving pods keep serving, and the message is that of the new pod.
#[tokio::test]
async fn a_failed_update_is_reported_and_not_rolled_back() {
    let (env, _operator, _) = shop(json!({ "auth": { "image": GOOD } })).await;
    env.project("shop", json!({ "auth": { "image": "registry/no-such-image:1" } }))
        .await;
    let project = env
        .until("shop", |project| {
            matches!(phase(project), Some(Phase::Failed | Phase::Updating))
                && condition(project, "Degraded").is_some_and(|(status, _)| status == "True")
        })
        .await;
    let message = project.status.as_ref().unwrap().message.clone().unwrap();
    assert!(message.contains("auth") && message.contains("Image"), "{message}");
    let sets = env.all::<ReplicaSet>().await;
    let serving = sets.values().find(|set| {
        let spec = set
            .spec
            .as_ref()
            .and_then(|spec| spec.template.as_ref()?.spec.as_ref());
        spec.is_some_and(|pod| pod.containers[0].image.as_deref() == Some(GOOD))
    });
    let ready = serving.unwrap().status.as_ref().unwrap().ready_replicas;
    assert_eq!(ready, Some(1));
    env.project("shop", json!({ "auth": { "image": GOOD } })).await;
    env.running("shop").await;
}
