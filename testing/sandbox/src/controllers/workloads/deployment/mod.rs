//! Deployments roll out from one `ReplicaSet` to the next: the new one scales up completely, then the old ones scale
//! down; with the strategy `Recreate` the other way round.

mod status;

use std::sync::Arc;

use serde_json::{Value, json};

use self::status::Totals;
use super::event::EventNote;
use super::{DEPLOYMENTS, REPLICA_SETS, Simulation, hash, number, owned_by};
use crate::error::ApiError;
use crate::handlers::Endpoint;
use crate::selector::Selector;
use crate::store::{Object, text};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

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
        self.adopt(deployment).await?;
        let sets = self.controlled(REPLICA_SETS, deployment);
        let paused = is_paused(deployment);
        let new = sets.iter().find(|set| same_template(set, &template));
        let Some(new) = new else {
            if paused {
                // The next revision waits.
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
        // A revision that is used again becomes the newest.
        let newest = old.iter().map(|set| revision(set)).max().unwrap_or_default();
        let own = revision(new);
        let current = if own > newest { own } else { newest + 1 };
        if current != own {
            let numbered =
                |object: &mut Value| object["metadata"]["annotations"][REVISION] = json!(current.to_string());
            self.actor
                .modify(
                    REPLICA_SETS,
                    new.namespace(),
                    new.name(),
                    Endpoint::Main,
                    numbered,
                )
                .await?;
        }
        self.record_revision(deployment, &current.to_string()).await?;
        let totals = Totals::of(&sets, Some(new));
        self.deployment_status(deployment, new.name(), &totals).await
    }

    /// Adopts the `ReplicaSets` that it selects and that have no controller: those of a former Deployment whose
    /// dependents were orphaned.
    async fn adopt(&self, deployment: &Object) -> Result<(), ApiError> {
        let selector = Selector::of_labels(&deployment.value()["spec"]["selector"]);
        let all = self
            .actor
            .store()
            .list(REPLICA_SETS, Some(deployment.namespace()));
        for (_, set) in all.objects {
            let owners = set
                .value()
                .pointer("/metadata/ownerReferences")
                .and_then(Value::as_array);
            let controlled = owners
                .into_iter()
                .flatten()
                .any(|owner| owner["controller"] == json!(true));
            if controlled || set.is_deleting() || !selector.matches(set.value()) {
                continue;
            }
            let own = |object: &mut Value| object["metadata"]["ownerReferences"] = owned_by(deployment);
            self.actor
                .modify(REPLICA_SETS, set.namespace(), set.name(), Endpoint::Main, own)
                .await?;
        }
        Ok(())
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

    /// Creates the `ReplicaSet` for a new template.
    async fn next_revision(
        &self,
        deployment: &Object,
        template: &Value,
        sets: &[Arc<Object>],
    ) -> Result<(), ApiError> {
        let hash = hash(template);
        let revision = 1 + sets.iter().map(|set| revision(set)).max().unwrap_or_default();
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
        let noted = EventNote {
            by: "deployment-controller",
            warning: false,
            reason: "ScalingReplicaSet",
            message,
        };
        self.record_event(deployment, noted).await;
    }

    async fn record_revision(&self, deployment: &Object, revision: &str) -> Result<(), ApiError> {
        self.actor
            .modify(
                DEPLOYMENTS,
                deployment.namespace(),
                deployment.name(),
                Endpoint::Status,
                |object| {
                    object["metadata"]["annotations"][REVISION] = json!(revision);
                },
            )
            .await
    }
}

/// The revision of a `ReplicaSet`.
fn revision(set: &Object) -> i64 {
    let pointer = format!("/metadata/annotations/{}", REVISION.replace('/', "~1"));
    set.text(&pointer).parse().unwrap_or_default()
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
