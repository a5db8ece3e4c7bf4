//! Schedules pods to the one node, or reports why not.

use serde_json::{Value, json};

use super::event::EventNote;
use super::{PODS, Simulation};
use crate::error::ApiError;
use crate::handlers::Endpoint;
use crate::store::{self, Object};

/// The name of the node.
pub(crate) const NODE: &str = "simulated";

impl Simulation {
    pub(super) async fn schedule(&self, pod: &Object) -> Result<(), ApiError> {
        let now = self.actor.server.clock.seconds();
        if let Some(message) = self.hindrance(pod) {
            let known = pod.value().pointer("/status/conditions");
            if known.is_some() {
                return Ok(());
            }
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastProbeTime": null,
                "observedGeneration": super::number(pod, "/metadata/generation"),
                "lastTransitionTime": now, "message": message,
            });
            self.set_status(pod, |status| status["conditions"] = json!([condition]))
                .await?;
            return self.announce(pod, true, "FailedScheduling", message).await;
        }
        self.actor
            .modify(PODS, pod.namespace(), pod.name(), Endpoint::Main, |object| {
                object["spec"]["nodeName"] = json!(NODE);
            })
            .await?;
        let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
        self.set_status(pod, |status| status["conditions"] = json!([condition]))
            .await?;
        let message = format!(
            "Successfully assigned {}/{} to {NODE}",
            pod.namespace(),
            pod.name()
        );
        self.announce(pod, false, "Scheduled", &message).await
    }

    /// Why the pod does not fit, with the scheduler's message.
    fn hindrance(&self, pod: &Object) -> Option<&'static str> {
        if !self.has_labels(pod) {
            return Some(
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, \
                 preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            );
        }
        self.waits_for_claim(pod)
            .then_some("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    }

    /// Whether the node has the labels that the pod selects.
    fn has_labels(&self, pod: &Object) -> bool {
        let node = self.actor.store().get("/nodes", &store::key("", NODE));
        let selector = pod
            .value()
            .pointer("/spec/nodeSelector")
            .and_then(Value::as_object);
        selector.into_iter().flatten().all(|(name, wanted)| {
            let labels = node
                .as_ref()
                .and_then(|node| node.value().pointer("/metadata/labels"));
            labels.and_then(|labels| labels.get(name)) == Some(wanted)
        })
    }

    fn waits_for_claim(&self, pod: &Object) -> bool {
        let volumes = pod.value().pointer("/spec/volumes").and_then(Value::as_array);
        let claims = volumes
            .into_iter()
            .flatten()
            .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str());
        let mut claims = claims.map(|claim| {
            let key = store::key(pod.namespace(), claim);
            self.actor.store().get("/persistentvolumeclaims", &key)
        });
        claims.any(|claim| claim.is_none_or(|claim| claim.text("/status/phase") != "Bound"))
    }

    async fn announce(
        &self,
        pod: &Object,
        warning: bool,
        reason: &'static str,
        message: &str,
    ) -> Result<(), ApiError> {
        let noted = EventNote {
            by: "default-scheduler",
            warning,
            reason,
            message,
        };
        self.record_event(pod, noted).await;
        Ok(())
    }
}
