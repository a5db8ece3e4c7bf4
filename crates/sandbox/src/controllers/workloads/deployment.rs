//! Deployments roll from one `ReplicaSet` to the next: the new one comes up whole, then the old ones go; or the
//! other way round, if they are recreated.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::tell::Told;
use super::{DEPLOYMENTS, REPLICA_SETS, Simulation, hash, number, owned_by, put};
use crate::error::ApiError;
use crate::handlers::Endpoint;
use crate::store::{Object, text};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The sums over all `ReplicaSets` of a Deployment.
struct Totals {
    all: i64,
    wanted: i64,
    ready: i64,
    updated: i64,
    new_ready: i64,
}

impl Totals {
    fn of(sets: &[Arc<Object>], new: Option<&Arc<Object>>) -> Self {
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

fn is_paused(deployment: &Object) -> bool {
    deployment.value().pointer("/spec/paused") == Some(&json!(true))
}

impl Simulation {
    pub(super) async fn deployment(&mut self, deployment: &Arc<Object>) -> Result<(), ApiError> {
        if deployment.is_deleting() {
            return Ok(());
        }
        let template = deployment
            .value()
            .pointer("/spec/template")
            .cloned()
            .unwrap_or_default();
        let sets = self.controlled(REPLICA_SETS, deployment);
        let paused = is_paused(deployment);
        let new = sets.iter().find(|set| same_template(set, &template));
        let Some(new) = new else {
            if paused {
                // Its next revision waits.
                let totals = Totals::of(&sets, None);
                return self.deployment_status(deployment, "", &totals).await;
            }
            return self.next_revision(deployment, &template, &sets).await;
        };
        let wanted = number(deployment, "/spec/replicas");
        let old: Vec<&Arc<Object>> = sets.iter().filter(|set| set.name() != new.name()).collect();
        let old_pods: i64 = old
            .iter()
            .map(|set| number(set, "/status/replicas").max(number(set, "/spec/replicas")))
            .sum();
        let recreate = deployment.text("/spec/strategy/type") == "Recreate";
        let complete = number(new, "/status/availableReplicas") >= wanted;
        if !paused {
            if !recreate || old_pods == 0 {
                self.scale(deployment, new, wanted).await?;
            }
            if recreate || complete {
                for set in &old {
                    self.scale(deployment, set, 0).await?;
                }
            }
        }
        self.record_revision(
            deployment,
            new.text(&format!("/metadata/annotations/{}", REVISION.replace('/', "~1"))),
        )
        .await?;
        let totals = Totals::of(&sets, Some(new));
        self.deployment_status(deployment, new.name(), &totals).await
    }

    async fn scale(&self, deployment: &Object, set: &Object, replicas: i64) -> Result<(), ApiError> {
        let before = number(set, "/spec/replicas");
        if before != replicas {
            let way = if replicas > before { "up" } else { "down" };
            let name = set.name();
            let message = format!("Scaled {way} replica set {name} from {before} to {replicas}");
            self.tell_scaling(deployment, &message).await;
        }
        self.actor
            .modify(
                REPLICA_SETS,
                set.namespace(),
                set.name(),
                Endpoint::Main,
                |object| {
                    object["spec"]["replicas"] = json!(replicas);
                },
            )
            .await
    }

    /// Makes the `ReplicaSet` for a template that has none yet.
    async fn next_revision(
        &self,
        deployment: &Object,
        template: &Value,
        sets: &[Arc<Object>],
    ) -> Result<(), ApiError> {
        let hash = hash(template);
        let revision = 1 + sets
            .iter()
            .filter_map(|set| {
                set.value()
                    .pointer("/metadata/annotations")?
                    .get(REVISION)?
                    .as_str()?
                    .parse::<i64>()
                    .ok()
            })
            .max()
            .unwrap_or_default();
        let wanted = number(deployment, "/spec/replicas");
        let recreate = deployment.text("/spec/strategy/type") == "Recreate" && !sets.is_empty();
        let mut template = template.clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = deployment
            .value()
            .pointer("/spec/selector")
            .cloned()
            .unwrap_or_default();
        selector["matchLabels"][HASH] = json!(hash);
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{hash}", deployment.name()),
                "labels": template.pointer("/metadata/labels"),
                "annotations": {
                    REVISION: revision.to_string(),
                    "deployment.kubernetes.io/desired-replicas": wanted.to_string(),
                    "deployment.kubernetes.io/max-replicas": (wanted + surge(deployment)).to_string(),
                },
                "ownerReferences": owned_by(deployment),
            },
            "spec": {"replicas": if recreate { 0 } else { wanted }, "selector": selector, "template": template},
        });
        self.actor
            .create(REPLICA_SETS, deployment.namespace(), &set)
            .await?;
        let (name, replicas) = (text(&set, "/metadata/name"), &set["spec"]["replicas"]);
        if replicas != &json!(0) {
            let message = format!("Scaled up replica set {name} from 0 to {replicas}");
            self.tell_scaling(deployment, &message).await;
        }
        Ok(())
    }

    async fn tell_scaling(&self, deployment: &Object, message: &str) {
        let told = Told {
            by: "deployment-controller",
            warning: false,
            reason: "ScalingReplicaSet",
            message,
        };
        self.tell(deployment, told).await;
    }

    async fn record_revision(&self, deployment: &Object, revision: &str) -> Result<(), ApiError> {
        self.actor
            .modify(
                DEPLOYMENTS,
                deployment.namespace(),
                deployment.name(),
                Endpoint::Main,
                |object| {
                    object["metadata"]["annotations"][REVISION] = json!(revision);
                },
            )
            .await
    }

    async fn deployment_status(
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
            // Nothing may happen until then: come back by the clock.
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

fn same_template(set: &Object, template: &Value) -> bool {
    let mut own = set.value().pointer("/spec/template").cloned().unwrap_or_default();
    if let Some(labels) = own.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(HASH);
    }
    own == *template
}

/// A number of replicas that may be a percentage.
fn share(value: Option<&Value>, of: i64, round_up: bool) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            if round_up {
                (of * percent + 99) / 100
            } else {
                of * percent / 100
            }
        }
        Some(number) => number.as_i64().unwrap_or_default(),
        None => 0,
    }
}

fn surge(deployment: &Object) -> i64 {
    share(
        deployment
            .value()
            .pointer("/spec/strategy/rollingUpdate/maxSurge"),
        number(deployment, "/spec/replicas"),
        true,
    )
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
    // Both rounded to nothing would stop every roll.
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
