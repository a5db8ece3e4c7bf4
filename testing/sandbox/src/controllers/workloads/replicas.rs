//! `ReplicaSets` and `DaemonSets`: a number of pods from one template.

use std::sync::Arc;

use serde_json::json;

use super::event::EventNote;
use super::{DAEMON_SETS, PODS, REPLICA_SETS, Simulation, is_ready, number, pod_of, put};
use crate::error::ApiError;
use crate::handlers::{DeleteOptions, Endpoint};
use crate::store::{Object, text};

fn noted<'m>(reason: &'static str, message: &'m str) -> EventNote<'m> {
    EventNote {
        by: "replicaset-controller",
        warning: false,
        reason,
        message,
    }
}

impl Simulation {
    /// Creates or deletes pods up to the wanted number, and returns the remaining ones.
    pub(super) async fn keep(&self, owner: &Object, wanted: i64) -> Result<Vec<Arc<Object>>, ApiError> {
        let mut pods: Vec<Arc<Object>> = self
            .controlled(PODS, owner)
            .into_iter()
            .filter(|pod| !pod.is_deleting())
            .collect();
        let wanted = usize::try_from(wanted.max(0)).unwrap_or_default();
        for _ in pods.len()..wanted {
            let pod = pod_of(owner, &self.actor.server.clock.suffix(5), &[]);
            self.actor.create(PODS, owner.namespace(), &pod).await?;
            let message = format!("Created pod: {}", text(&pod, "/metadata/name"));
            self.record_event(owner, noted("SuccessfulCreate", &message))
                .await;
        }
        // Pods that are not ready are deleted first.
        pods.sort_by_key(|pod| is_ready(pod));
        for pod in pods.iter().take(pods.len().saturating_sub(wanted)) {
            self.actor.delete(PODS, pod, &DeleteOptions::background()).await?;
            let message = format!("Deleted pod: {}", pod.name());
            self.record_event(owner, noted("SuccessfulDelete", &message))
                .await;
        }
        Ok(self
            .controlled(PODS, owner)
            .into_iter()
            .filter(|pod| !pod.is_deleting())
            .collect())
    }

    pub(super) async fn replica_set(&self, set: &Arc<Object>) -> Result<(), ApiError> {
        if set.is_deleting() {
            return Ok(());
        }
        let pods = self.keep(set, number(set, "/spec/replicas")).await?;
        let (all, ready) = (
            count(pods.len()),
            count(pods.iter().filter(|pod| is_ready(pod)).count()),
        );
        let generation = number(set, "/metadata/generation");
        self.actor
            .modify(
                REPLICA_SETS,
                set.namespace(),
                set.name(),
                Endpoint::Status,
                |object| {
                    let status = &mut object["status"];
                    status["replicas"] = json!(all);
                    status["observedGeneration"] = json!(generation);
                    for (key, value) in [
                        ("fullyLabeledReplicas", all),
                        ("readyReplicas", ready),
                        ("availableReplicas", ready),
                    ] {
                        put(status, key, value);
                    }
                    status["terminatingReplicas"] = json!(0);
                },
            )
            .await
    }

    pub(super) async fn daemon_set(&self, set: &Arc<Object>) -> Result<(), ApiError> {
        if set.is_deleting() {
            return Ok(());
        }
        let pods = self.keep(set, 1).await?;
        let ready = count(pods.iter().filter(|pod| is_ready(pod)).count());
        let generation = number(set, "/metadata/generation");
        self.actor
            .modify(
                DAEMON_SETS,
                set.namespace(),
                set.name(),
                Endpoint::Status,
                |object| {
                    let status = &mut object["status"];
                    for key in [
                        "currentNumberScheduled",
                        "desiredNumberScheduled",
                        "updatedNumberScheduled",
                    ] {
                        status[key] = json!(1);
                    }
                    status["numberMisscheduled"] = json!(0);
                    status["numberReady"] = json!(ready);
                    status["observedGeneration"] = json!(generation);
                    put(status, "numberAvailable", ready);
                    put(status, "numberUnavailable", 1 - ready);
                },
            )
            .await
    }
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
