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
use crate::stage::{condition, container};

const GOOD: &str = "supabase/gotrue:v2.196.0";

fn phase(project: &SupabaseProject) -> Option<Phase> {
    let status = project.status.as_ref()?;
    (status.observed_generation == project.metadata.generation).then_some(status.phase)?
}

#[tokio::test]
async fn what_guards_and_scales_pods_comes_and_goes_with_its_field() {
    let more = json!({
        "networkPolicy": { "from": [{ "namespaceSelector": {} }] }, "podDisruptionBudget": { "maxUnavailable": 2 },
        "auth": { "autoscaling": { "minReplicas": 2, "maxReplicas": 5 } },
    });
    let (stage, _operator, _) = shop(more).await;
    let policies = stage.all::<NetworkPolicy>().await;
    assert!(policies.contains_key("shop") && policies.contains_key("shop-kong"));
    let budgets = stage.all::<PodDisruptionBudget>().await;
    let expected: Vec<String> = COMPONENTS.map(|(name, _)| format!("shop-{name}")).into();
    assert_eq!(budgets.keys().cloned().collect::<Vec<_>>(), expected);
    let scalers = stage.all::<HorizontalPodAutoscaler>().await;
    let [(name, scaler)] = scalers.iter().collect::<Vec<_>>()[..] else {
        panic!("{scalers:?}")
    };
    assert_eq!(
        (name.as_str(), scaler.spec.as_ref().unwrap().max_replicas),
        ("shop-auth", 5)
    );
    // From now on the autoscaler owns the number of replicas.
    let scale = json!({ "spec": { "replicas": 3 } });
    stage.patch::<Deployment>("shop-auth", scale).await;
    stage
        .project("shop", json!({ "auth": { "autoscaling": { "maxReplicas": 6 } } }))
        .await;
    stage.running("shop").await;
    let auth: Deployment = stage.get("shop-auth").await;
    assert_eq!(auth.spec.unwrap().replicas, Some(3));
    stage
        .wait()
        .gone(&stage.api::<NetworkPolicy>(), "shop-kong")
        .await;
    stage
        .wait()
        .gone(&stage.api::<PodDisruptionBudget>(), "shop-kong")
        .await;
    stage.project("shop", json!({})).await;
    stage
        .wait()
        .gone(&stage.api::<HorizontalPodAutoscaler>(), "shop-auth")
        .await;
}

#[tokio::test]
async fn a_suspended_project_is_left_alone_until_it_is_not() {
    let (stage, _operator, _) = shop(json!({})).await;
    let more = |suspend| json!({ "suspend": suspend, "auth": { "image": GOOD } });
    let before: Deployment = stage.get("shop-auth").await;
    stage.project("shop", more(true)).await;
    let says = |project: &SupabaseProject| {
        let message = project
            .status
            .as_ref()
            .and_then(|status| status.message.as_deref());
        message.is_some_and(|message| message.starts_with("suspended"))
    };
    stage.until("shop", says).await;
    stage.delete::<Deployment>("shop-meta").await;
    // The operator reconciles the next project completely, and has not changed this one.
    stage.secret("other", stage.secret_for("postgres")).await;
    stage
        .project(
            "other",
            json!({ "database": { "secretRef": { "name": "other" } } }),
        )
        .await;
    stage.running("other").await;
    assert!(!stage.all::<Deployment>().await.contains_key("shop-meta"));
    let auth: Deployment = stage.get("shop-auth").await;
    assert_eq!(auth.metadata.generation, before.metadata.generation);
    stage.project("shop", more(false)).await;
    stage.running("shop").await;
    let auth: Deployment = stage.get("shop-auth").await;
    assert_eq!(container(&auth).image.as_deref(), Some(GOOD));
    stage.get::<Deployment>("shop-meta").await;
}

/// The serving pods keep serving, and the message is that of the new pod.
#[tokio::test]
async fn an_update_that_fails_stays_as_it_is_and_is_told() {
    let (stage, _operator, _) = shop(json!({ "auth": { "image": GOOD } })).await;
    stage
        .project("shop", json!({ "auth": { "image": "registry/no-such-image:1" } }))
        .await;
    let project = stage
        .until("shop", |project| {
            matches!(phase(project), Some(Phase::Failed | Phase::Updating))
                && condition(project, "Degraded").is_some_and(|(status, _)| status == "True")
        })
        .await;
    let message = project.status.as_ref().unwrap().message.clone().unwrap();
    assert!(message.contains("auth") && message.contains("Image"), "{message}");
    let sets = stage.all::<ReplicaSet>().await;
    let serving = sets.values().find(|set| {
        let spec = set
            .spec
            .as_ref()
            .and_then(|spec| spec.template.as_ref()?.spec.as_ref());
        spec.is_some_and(|pod| pod.containers[0].image.as_deref() == Some(GOOD))
    });
    let ready = serving.unwrap().status.as_ref().unwrap().ready_replicas;
    assert_eq!(ready, Some(1));
    stage.project("shop", json!({ "auth": { "image": GOOD } })).await;
    stage.running("shop").await;
}
