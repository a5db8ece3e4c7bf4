//! Explains why a component is not ready, with the messages of its pods, and decides when to read them. A read costs a
//! call, and most rollouts are merely slow: so only pods that exist and do not progress are read, with exponential
//! backoff.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;
use stanchion_kernel::children::Rollout;
use tokio::time::Instant;

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
pub(crate) fn pod_problems(pods: &[Pod]) -> Vec<PodProblem> {
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

/// Delay of the first read.
const FIRST: Duration = Duration::from_secs(10);
/// The longest delay between two reads.
pub(crate) const MOST: Duration = Duration::from_mins(2);

/// Rollouts that do not progress.
#[derive(Clone, Debug)]
pub struct StalledRollout {
    /// Digest of their progress.
    at: u64,
    /// When to read the pods.
    next: Instant,
    /// The current delay.
    retry_delay: Duration,
}

impl StalledRollout {
    /// The next state for these rollouts; `None` if there is no pod to wait for.
    pub fn after<'a>(
        before: Option<Self>,
        rollouts: impl Iterator<Item = &'a Rollout>,
        now: Instant,
    ) -> Option<Self> {
        let mut at = DefaultHasher::new();
        let mut waiting = false;
        for rollout in rollouts {
            (
                rollout.generation,
                rollout.updated,
                rollout.ready,
                rollout.available,
            )
                .hash(&mut at);
            // If no pod could be created, the Deployment itself says why.
            waiting |= !rollout.is_complete() && rollout.updated > 0;
        }
        let at = at.finish();
        let new = || Self {
            at,
            next: now + FIRST,
            retry_delay: FIRST,
        };
        waiting.then(|| before.filter(|before| before.at == at).unwrap_or_else(new))
    }

    /// The pods were read now.
    pub fn asked(&mut self, now: Instant) {
        self.retry_delay = (self.retry_delay * 2).min(MOST);
        self.next = now + self.retry_delay;
    }

    /// How long until the pods are to be read.
    pub fn left(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }
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

    /// One pod of two is ready.
    const BEHIND: Rollout = Rollout {
        generation: 1,
        observed: 1,
        desired: 2,
        replicas: 2,
        updated: 2,
        ready: 1,
        available: 1,
        stuck: None,
    };

    fn after(before: Option<StalledRollout>, rollout: &Rollout, now: Instant) -> Option<StalledRollout> {
        StalledRollout::after(before, [rollout].into_iter(), now)
    }

    #[test]
    fn pods_of_a_stalled_rollout_are_read_with_backoff() {
        let mut now = Instant::now();
        let mut stalled = after(None, &BEHIND, now).unwrap();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let left = stalled.left(now);
            waits.push(left.as_secs());
            now += left;
            stalled = after(Some(stalled), &BEHIND, now).unwrap();
            assert_eq!(stalled.left(now), Duration::ZERO);
            stalled.asked(now);
        }
        assert_eq!(waits, [10, 20, 40, 80, 120, 120]);
    }

    #[test]
    fn a_step_forward_is_waited_for_anew() {
        let start = Instant::now();
        let mut stalled = after(None, &BEHIND, start).unwrap();
        stalled.asked(start);
        let moved = Rollout { ready: 0, ..BEHIND };
        let later = start + Duration::from_secs(5);
        let stalled = after(Some(stalled), &moved, later).unwrap();
        assert_eq!(stalled.left(later), FIRST);
    }

    #[test]
    fn missing_and_ready_pods_are_not_read() {
        let none = Rollout { updated: 0, ..BEHIND };
        let complete = Rollout {
            ready: 2,
            available: 2,
            ..BEHIND
        };
        for rollout in [none, complete] {
            assert!(after(None, &rollout, Instant::now()).is_none(), "{rollout:?}");
        }
    }
}
