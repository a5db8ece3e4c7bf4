//! The status of a Deployment.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{DEPLOYMENTS, Simulation, number, put};
use super::{is_paused, share, surge};
use crate::error::ApiError;
use crate::handlers::Endpoint;
use crate::store::{Object, text};

/// The sums over all `ReplicaSets` of a Deployment.
pub(super) struct Totals {
    all: i64,
    wanted: i64,
    ready: i64,
    updated: i64,
    new_ready: i64,
}

impl Totals {
    pub(super) fn of(sets: &[Arc<Object>], new: Option<&Arc<Object>>) -> Self {
        let sum = |pointer: &str| sets.iter().map(|set| number(set, pointer)).sum();
        Self {
            all: sum("/status/replicas"),
            wanted: sum("/spec/replicas"),
            ready: sum("/status/readyReplicas"),
            updated: new.map_or(0, |new| number(new, "/status/replicas")),
            new_ready: new.map_or(0, |new| number(new, "/status/readyReplicas")),
        }
    }
}

impl Simulation {
    /// Writes the progress of the rollout, and schedules a check of the progress deadline.
    pub(super) async fn deployment_status(
        &mut self,
        deployment: &Object,
        set: &str,
        totals: &Totals,
    ) -> Result<(), ApiError> {
        let wanted = number(deployment, "/spec/replicas");
        let generation = number(deployment, "/metadata/generation");
        let now = self.actor.server.clock.now();
        let deadline = number(deployment, "/spec/progressDeadlineSeconds");
        let available = totals.ready >= wanted - unavailable(deployment);
        let complete = totals.new_ready >= wanted && totals.updated == wanted && totals.all == wanted;
        let last = conditions(deployment.value())
            .iter()
            .find(|c| text(c, "/type") == "Progressing")
            .cloned();
        let since = last
            .as_ref()
            .and_then(|c| text(c, "/lastUpdateTime").parse::<jiff::Timestamp>().ok());
        let moved = number(deployment, "/status/readyReplicas") != totals.ready
            || number(deployment, "/status/updatedReplicas") != totals.updated
            || number(deployment, "/status/observedGeneration") != generation;
        let late = !moved && since.is_some_and(|since| now.as_second() - since.as_second() >= deadline);
        let timed_out = last
            .as_ref()
            .is_some_and(|c| text(c, "/reason") == "ProgressDeadlineExceeded");
        let progressing = if is_paused(deployment) && set.is_empty() {
            ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned())
        } else if complete {
            (
                "True",
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{set}\" has successfully progressed."),
            )
        } else if late || (timed_out && !moved) {
            (
                "False",
                "ProgressDeadlineExceeded",
                format!("ReplicaSet \"{set}\" has timed out progressing."),
            )
        } else if last.is_none() {
            (
                "True",
                "NewReplicaSetCreated",
                format!("Created new replica set \"{set}\""),
            )
        } else {
            (
                "True",
                "ReplicaSetUpdated",
                format!("ReplicaSet \"{set}\" is progressing."),
            )
        };
        let availability = if available {
            (
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.".to_owned(),
            )
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.".to_owned(),
            )
        };
        let now = self.actor.server.clock.seconds();
        self.actor
            .modify(
                DEPLOYMENTS,
                deployment.namespace(),
                deployment.name(),
                Endpoint::Status,
                |object| {
                    let status = &mut object["status"];
                    status["observedGeneration"] = json!(generation);
                    for (key, value) in [
                        ("replicas", totals.all),
                        ("updatedReplicas", totals.updated),
                        ("readyReplicas", totals.ready),
                        ("availableReplicas", totals.ready),
                        ("unavailableReplicas", (totals.wanted - totals.ready).max(0)),
                    ] {
                        put(status, key, value);
                    }
                    status["terminatingReplicas"] = json!(0);
                    set_condition(status, "Available", &availability, &now, false);
                    set_condition(status, "Progressing", &progressing, &now, moved);
                },
            )
            .await?;
        if !complete && !late && deadline > 0 && moved {
            // Nothing else may happen until then, so schedule a check.
            self.return_to(
                DEPLOYMENTS,
                deployment,
                Duration::from_secs(u64::try_from(deadline).unwrap_or_default() + 1),
            );
        }
        Ok(())
    }
}

fn conditions(object: &Value) -> Vec<Value> {
    object
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn unavailable(deployment: &Object) -> i64 {
    let wanted = number(deployment, "/spec/replicas");
    let share = share(
        deployment
            .value()
            .pointer("/spec/strategy/rollingUpdate/maxUnavailable"),
        wanted,
        false,
    );
    // If both are rounded down to zero, no rollout could proceed.
    if share == 0 && surge(deployment) == 0 {
        1
    } else {
        share
    }
}

fn set_condition(
    status: &mut Value,
    kind: &str,
    (value, reason, message): &(&str, &str, String),
    now: &str,
    renew: bool,
) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(list) = status["conditions"].as_array_mut() else {
        return;
    };
    let old = list
        .iter()
        .position(|condition| text(condition, "/type") == kind)
        .map(|index| list.remove(index));
    let same = old
        .as_ref()
        .is_some_and(|old| text(old, "/reason") == *reason && text(old, "/message") == message);
    let unchanged = old.as_ref().is_some_and(|old| text(old, "/status") == *value);
    let kept = |key: &str| old.as_ref().and_then(|old| old.get(key)).cloned();
    let updated = if same && !renew {
        kept("lastUpdateTime")
    } else {
        None
    };
    let turned = if unchanged {
        kept("lastTransitionTime")
    } else {
        None
    };
    list.push(json!({
        "type": kind, "status": value, "lastUpdateTime": updated.unwrap_or_else(|| json!(now)),
        "lastTransitionTime": turned.unwrap_or_else(|| json!(now)), "reason": reason, "message": message,
    }));
    list.sort_by_key(|condition| text(condition, "/type").to_owned());
}
