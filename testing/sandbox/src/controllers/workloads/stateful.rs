//! `StatefulSets`: pods with stable names and claims, in order.

use std::sync::Arc;

use serde_json::{Value, json};

use super::replicas::count;
use super::{PODS, STATEFUL_SETS, Simulation, hash, is_ready, number, pod_of, put};
use crate::error::ApiError;
use crate::handlers::{DeleteOptions, Endpoint};
use crate::store::{self, Object, text};

const REVISION: &str = "controller-revision-hash";

impl Simulation {
    pub(super) async fn stateful_set(&self, set: &Arc<Object>) -> Result<(), ApiError> {
        if set.is_deleting() {
            return Ok(());
        }
        let wanted = number(set, "/spec/replicas");
        let parallel = set.text("/spec/podManagementPolicy") == "Parallel";
        let template = set.value().pointer("/spec/template").cloned().unwrap_or_default();
        let revision = format!("{}-{}", set.name(), hash(&template));
        let pods = self.controlled(PODS, set);
        let find = |ordinal: i64| {
            pods.iter()
                .find(|pod| pod.name() == format!("{}-{ordinal}", set.name()))
        };
        for ordinal in 0..wanted {
            match find(ordinal) {
                None => self.ordinal(set, ordinal, &revision).await?,
                Some(pod) if is_ready(pod) => continue,
                Some(_) => {}
            }
            if !parallel {
                break;
            }
        }
        let all_ready = (0..wanted).all(|ordinal| find(ordinal).is_some_and(|pod| is_ready(pod)));
        let beyond = pods
            .iter()
            .filter(|pod| !pod.is_deleting() && ordinal_of(pod) >= wanted)
            .max_by_key(|pod| ordinal_of(pod));
        if let Some(pod) = beyond {
            self.actor.delete(PODS, pod, &DeleteOptions::background()).await?;
        } else if all_ready && set.text("/spec/updateStrategy/type") != "OnDelete" {
            let partition = number(set, "/spec/updateStrategy/rollingUpdate/partition");
            let outdated = pods
                .iter()
                .filter(|pod| label(pod) != revision && ordinal_of(pod) >= partition);
            if let Some(pod) = outdated.max_by_key(|pod| ordinal_of(pod)) {
                self.actor.delete(PODS, pod, &DeleteOptions::background()).await?;
            }
        }
        self.stateful_status(set, &revision).await
    }

    async fn ordinal(&self, set: &Object, ordinal: i64, revision: &str) -> Result<(), ApiError> {
        let name = format!("{}-{ordinal}", set.name());
        let index = ordinal.to_string();
        let labels = [
            (REVISION, revision),
            ("statefulset.kubernetes.io/pod-name", &name),
            ("apps.kubernetes.io/pod-index", &index),
        ];
        let mut pod = pod_of(set, "", &labels);
        pod["metadata"]["name"] = json!(name);
        pod["spec"]["hostname"] = json!(name);
        let service = set.text("/spec/serviceName");
        if !service.is_empty() {
            pod["spec"]["subdomain"] = json!(service);
        }
        let templates = set
            .value()
            .pointer("/spec/volumeClaimTemplates")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for template in &templates {
            let volume = text(template, "/metadata/name");
            let claim = format!("{volume}-{name}");
            if self
                .actor
                .store()
                .get("/persistentvolumeclaims", &store::key(set.namespace(), &claim))
                .is_none()
            {
                let object = json!({
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "metadata": {"name": claim, "labels": set.value().pointer("/spec/selector/matchLabels")},
                    "spec": template["spec"],
                });
                self.actor
                    .create("/persistentvolumeclaims", set.namespace(), &object)
                    .await?;
            }
            if !pod["spec"]["volumes"].is_array() {
                pod["spec"]["volumes"] = json!([]);
            }
            if let Some(list) = pod["spec"]["volumes"].as_array_mut() {
                list.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
            }
        }
        self.actor.create(PODS, set.namespace(), &pod).await
    }

    async fn stateful_status(&self, set: &Object, revision: &str) -> Result<(), ApiError> {
        let pods: Vec<Arc<Object>> = self
            .controlled(PODS, set)
            .into_iter()
            .filter(|pod| !pod.is_deleting())
            .collect();
        let ready = count(pods.iter().filter(|pod| is_ready(pod)).count());
        let updated = count(pods.iter().filter(|pod| label(pod) == revision).count());
        let (all, generation, wanted) = (
            count(pods.len()),
            number(set, "/metadata/generation"),
            number(set, "/spec/replicas"),
        );
        self.actor
            .modify(
                STATEFUL_SETS,
                set.namespace(),
                set.name(),
                Endpoint::Status,
                |object| {
                    let status = &mut object["status"];
                    let current = match text(status, "/currentRevision") {
                        "" => revision.to_owned(),
                        _ if updated == wanted && ready == wanted => revision.to_owned(),
                        current => current.to_owned(),
                    };
                    status["observedGeneration"] = json!(generation);
                    status["replicas"] = json!(all);
                    status["availableReplicas"] = json!(ready);
                    status["collisionCount"] = json!(0);
                    status["updateRevision"] = json!(revision);
                    put(status, "readyReplicas", ready);
                    put(status, "updatedReplicas", updated);
                    put(
                        status,
                        "currentReplicas",
                        if current == revision {
                            updated
                        } else {
                            all - updated
                        },
                    );
                    status["currentRevision"] = json!(current);
                },
            )
            .await
    }
}

fn label(pod: &Object) -> &str {
    pod.value()
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(REVISION))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn ordinal_of(pod: &Object) -> i64 {
    pod.name()
        .rsplit('-')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(-1)
}
