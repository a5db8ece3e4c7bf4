//! Pods: once they are scheduled, their image names decide their state.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{PODS, Simulation};
use crate::error::ApiError;
use crate::handlers::{DeleteOptions, Endpoint};
use crate::store::{Object, text};

/// What happens to a container, by the name of its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    NeverPulled,
    Crashes,
    Hangs,
}

impl Fate {
    fn of(container: &Value) -> Self {
        let image = text(container, "/image");
        [
            ("no-such-image", Self::NeverPulled),
            ("crash-loop", Self::Crashes),
            ("hang", Self::Hangs),
        ]
        .into_iter()
        .find(|(word, _)| image.contains(word))
        .map_or(Self::Runs, |(_, fate)| fate)
    }

    fn status(self, container: &Value, now: &str) -> Value {
        let (name, image) = (text(container, "/name"), text(container, "/image"));
        let base = |ready: bool, restarts: i64, state: Value| json!({"name": name, "image": image, "imageID": "", "ready": ready, "restartCount": restarts, "state": state});
        let mut status = match self {
            Self::Runs => base(true, 0, json!({"running": {"startedAt": now}})),
            Self::Hangs => base(false, 0, json!({"running": {"startedAt": now}})),
            Self::NeverPulled => base(
                false,
                0,
                json!({"waiting": {
                    "reason": "ImagePullBackOff", "message": format!("Back-off pulling image \"{image}\""),
                }}),
            ),
            Self::Crashes => base(
                false,
                5,
                json!({"waiting": {
                    "reason": "CrashLoopBackOff", "message": format!("back-off 2m40s restarting failed container={name}"),
                }}),
            ),
        };
        match self {
            Self::Runs | Self::Hangs => status["started"] = json!(true),
            Self::Crashes => {
                status["started"] = json!(false);
                status["lastState"] = json!({"terminated": {
                    "exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now,
                }});
            }
            Self::NeverPulled => status["started"] = json!(false),
        }
        if status.get("lastState").is_none() {
            status["lastState"] = json!({});
        }
        status
    }
}

impl Simulation {
    pub(super) async fn pod(&mut self, pod: &Arc<Object>) -> Result<(), ApiError> {
        if pod.is_deleting() {
            if number_of_grace(pod) > 0 || pod.finalizers().is_empty() {
                return self.actor.delete(PODS, pod, &DeleteOptions::now()).await;
            }
            return Ok(());
        }
        if pod.text("/spec/nodeName").is_empty() {
            // Pods with another scheduler wait for it.
            let ours = pod.text("/spec/schedulerName") == "default-scheduler";
            return if ours { self.schedule(pod).await } else { Ok(()) };
        }
        if self.run_processes(pod).await? {
            return Ok(());
        }
        match pod.text("/status/phase") {
            "Pending" if pod.value().pointer("/status/containerStatuses").is_none() => {
                if !self.pod_start.is_zero() && pod.value().pointer("/status/startTime").is_none() {
                    // The start time marks a pod whose timer runs.
                    let now = self.actor.server.clock.seconds();
                    self.set_status(pod, |status| status["startTime"] = json!(now))
                        .await?;
                    self.return_to(PODS, pod, self.pod_start);
                    return Ok(());
                }
                if self.pod_start.is_zero() || self.has_waited(pod) {
                    return self.begin(pod).await;
                }
                Ok(())
            }
            "Running" if is_of_job(pod) && fates(pod).all(|fate| fate == Fate::Runs) => {
                self.finish(pod).await
            }
            _ => Ok(()),
        }
    }

    fn has_waited(&self, pod: &Object) -> bool {
        let started = pod.text("/status/startTime").parse::<jiff::Timestamp>();
        started.is_ok_and(|started| {
            // The start time is cut to whole seconds, so this cannot wait forever.
            self.actor
                .server
                .clock
                .now()
                .duration_since(started)
                .unsigned_abs()
                >= self.pod_start
        })
    }

    pub(super) async fn set_status(
        &self,
        pod: &Object,
        change: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<(), ApiError> {
        let change = |object: &mut Value| {
            if !object["status"].is_object() {
                object["status"] = json!({});
            }
            change(&mut object["status"]);
        };
        self.actor
            .modify(PODS, pod.namespace(), pod.name(), Endpoint::Status, change)
            .await
    }

    /// Sets the state when the containers start.
    pub(super) async fn begin(&self, pod: &Object) -> Result<(), ApiError> {
        let now = self.actor.server.clock.seconds();
        if pod.text("/spec/restartPolicy") == "Never" && fates(pod).any(|fate| fate == Fate::Crashes) {
            return self.crash_once(pod, &now).await;
        }
        let containers: Vec<Value> = pod
            .value()
            .pointer("/spec/containers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let pulled = containers
            .iter()
            .all(|container| Fate::of(container) != Fate::NeverPulled);
        let ready = containers
            .iter()
            .all(|container| Fate::of(container) == Fate::Runs);
        let statuses: Vec<Value> = containers
            .iter()
            .map(|container| Fate::of(container).status(container, &now))
            .collect();
        let inits: Vec<Value> = pod
            .value()
            .pointer("/spec/initContainers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|container| json!({
                "name": text(container, "/name"), "image": text(container, "/image"), "imageID": "", "ready": true,
                "restartCount": 0, "lastState": {},
                "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}},
            }))
            .collect();
        self.set_status(pod, |status| {
            status["phase"] = json!(if pulled { "Running" } else { "Pending" });
            status["startTime"] = json!(now);
            let scheduled = status["conditions"].as_array().cloned().unwrap_or_default();
            let mut conditions = Vec::new();
            for (kind, good) in [("Initialized", true), ("ContainersReady", ready), ("Ready", ready)] {
                let mut condition = json!({
                    "type": kind, "status": if good { "True" } else { "False" }, "lastProbeTime": null, "lastTransitionTime": now,
                });
                if !good {
                    condition["reason"] = json!("ContainersNotReady");
                }
                conditions.push(condition);
            }
            conditions.extend(scheduled);
            status["conditions"] = json!(conditions);
            status["containerStatuses"] = json!(statuses);
            if !inits.is_empty() {
                status["initContainerStatuses"] = json!(inits);
            }
            if ready {
                status["podIP"] = json!("127.0.0.1");
                status["podIPs"] = json!([{"ip": "127.0.0.1"}]);
            }
        })
        .await
    }

    /// A pod that is not restarted fails for good.
    pub(super) async fn crash_once(&self, pod: &Object, now: &str) -> Result<(), ApiError> {
        let containers = pod
            .value()
            .pointer("/spec/containers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let statuses: Vec<Value> = containers
            .map(|container| {
                json!({
                    "name": text(container, "/name"), "image": text(container, "/image"), "imageID": "",
                    "ready": false, "started": false, "restartCount": 0, "lastState": {},
                    "state": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}},
                })
            })
            .collect();
        self.set_status(pod, |status| {
            status["phase"] = json!("Failed");
            status["startTime"] = json!(now);
            status["containerStatuses"] = json!(statuses);
        })
        .await
    }

    /// Completes the pods of a Job.
    pub(super) async fn finish(&self, pod: &Object) -> Result<(), ApiError> {
        let now = self.actor.server.clock.seconds();
        self.set_status(pod, |status| {
            status["phase"] = json!("Succeeded");
            for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
                container["ready"] = json!(false);
                container["started"] = json!(false);
                container["state"] = json!({"terminated": {
                    "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now,
                }});
            }
        })
        .await
    }
}

fn number_of_grace(pod: &Object) -> i64 {
    super::number(pod, "/metadata/deletionGracePeriodSeconds")
}

fn fates(pod: &Object) -> impl Iterator<Item = Fate> {
    pod.value()
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(Fate::of)
}

fn is_of_job(pod: &Object) -> bool {
    let owners = pod
        .value()
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    owners.into_iter().any(|owner| text(owner, "/kind") == "Job")
}
