//! Autoscalers and `PodDisruptionBudgets`.

use serde_json::{Value, json};
use stanchion_api::supabase::Options;

use crate::components::{Component, Project};

/// The autoscaler of a component, if it is requested.
pub fn autoscaler(component: &Component, options: &Options, project: &Project<'_>) -> Option<Value> {
    let scaling = options.autoscaling.as_ref()?;
    let name = component.child_name(project.name);
    let metric = |resource: &str, share: u32| {
        json!({ "type": "Resource", "resource": {
            "name": resource,
            "target": { "type": "Utilization", "averageUtilization": share },
        }})
    };
    let mut metrics = vec![metric("cpu", scaling.target_cpu_utilization_percentage)];
    metrics.extend(
        scaling
            .target_memory_utilization_percentage
            .map(|share| metric("memory", share)),
    );
    Some(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": name, "labels": component.labels(project.name) },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": metrics,
        },
    }))
}

/// The `PodDisruptionBudget` of a component, if it is requested.
pub fn disruption_budget(component: &Component, project: &Project<'_>) -> Option<Value> {
    let budget = project.spec.pod_disruption_budget.as_ref()?;
    let labels = component.labels(project.name);
    Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": component.child_name(project.name), "labels": labels },
        "spec": { "maxUnavailable": budget.max_unavailable, "selector": { "matchLabels": labels } },
    }))
}
