//! Explains why a component is not ready, with the messages of its pods.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;

/// Reasons that waiting does not resolve.
const FATAL: &[&str] = &[
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// What keeps a component from being ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodProblem {
    /// The component, by its label.
    pub component: String,
    /// The pod's own reason.
    pub reason: String,
    /// The pod, and its own message.
    pub message: String,
}

/// The first problem of each component.
pub fn pod_problems(pods: &[Pod]) -> Vec<PodProblem> {
    let mut all: Vec<PodProblem> = Vec::new();
    for pod in pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    {
        let Some(component) = pod.labels().get("app.kubernetes.io/name") else {
            continue;
        };
        if all.iter().any(|known| known.component == *component) {
            continue;
        }
        if let Some((reason, message)) = pod_problem(pod) {
            let said = if message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            };
            all.push(PodProblem {
                component: component.clone(),
                message: format!("pod {}: {reason}{said}", pod.name_any()),
                reason,
            });
        }
    }
    all
}

fn pod_problem(pod: &Pod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?;
    let mut containers = status.container_statuses.iter().flatten();
    let stuck = |container: &ContainerStatus| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting
            .reason
            .clone()
            .filter(|reason| FATAL.contains(&reason.as_str()))?;
        Some((reason, waiting.message.clone().unwrap_or_default()))
    };
    containers.find_map(stuck).or_else(|| {
        let unscheduled = status.conditions.iter().flatten().find(|condition| {
            condition.type_ == "PodScheduled"
                && condition.status == "False"
                && condition.reason.as_deref() == Some("Unschedulable")
        })?;
        Some((
            "Unschedulable".into(),
            unscheduled.message.clone().unwrap_or_default(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(component: &str, status: &Value) -> Pod {
        let pod = json!({
            "metadata": {"name": format!("shop-{component}-1"), "labels": {"app.kubernetes.io/name": component}},
            "status": status,
        });
        serde_json::from_value(pod).unwrap()
    }

    fn waiting(reason: &str) -> Value {
        json!({"containerStatuses": [{
            "name": "x", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": "it says why"}},
        }]})
    }

    #[test]
    fn the_message_of_a_pod_is_reported() {
        let unscheduled = json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"},
        ]});
        let pods = [
            pod("auth", &waiting("ImagePullBackOff")),
            pod("auth", &waiting("CrashLoopBackOff")),
            pod("meta", &waiting("ContainerCreating")),
            pod("kong", &unscheduled),
            pod("rest", &json!({})),
        ];
        let said: Vec<String> = pod_problems(&pods)
            .into_iter()
            .map(|pod_problem| pod_problem.message)
            .collect();
        assert_eq!(
            said,
            [
                "pod shop-auth-1: ImagePullBackOff: it says why",
                "pod shop-kong-1: Unschedulable: 0/1 nodes"
            ]
        );
    }
}
