//! Jobs: pods that run to completion.

use std::sync::Arc;

use serde_json::{Value, json};

use super::replicas::count;
use super::{JOBS, PODS, Simulation, is_ready, pod_of, put};
use crate::error::ApiError;
use crate::handlers::Endpoint;
use crate::store::{Object, text};

impl Simulation {
    pub(super) async fn job(&self, job: &Arc<Object>) -> Result<(), ApiError> {
        if job.is_deleting() || is_over(job) {
            return Ok(());
        }
        let suspended = job.value().pointer("/spec/suspend") == Some(&json!(true));
        let wanted = job
            .value()
            .pointer("/spec/completions")
            .and_then(Value::as_i64)
            .unwrap_or(1);
        let parallel = job
            .value()
            .pointer("/spec/parallelism")
            .and_then(Value::as_i64)
            .unwrap_or(1);
        let in_phase = |pods: &[Arc<Object>], phase: &str| {
            count(
                pods.iter()
                    .filter(|pod| pod.text("/status/phase") == phase)
                    .count(),
            )
        };
        let mut pods = self.controlled(PODS, job);
        let succeeded = in_phase(&pods, "Succeeded");
        let active = count(pods.len()) - succeeded - in_phase(&pods, "Failed");
        let failed = in_phase(&pods, "Failed");
        let limit = job
            .value()
            .pointer("/spec/backoffLimit")
            .and_then(Value::as_i64)
            .unwrap_or(6);
        let given_up = failed > limit;
        if !suspended && !given_up {
            for _ in active..parallel.min(wanted - succeeded) {
                self.actor
                    .create(
                        PODS,
                        job.namespace(),
                        &pod_of(job, &self.actor.server.clock.suffix(5), &[]),
                    )
                    .await?;
            }
            pods = self.controlled(PODS, job);
        }
        let (succeeded, failed) = (in_phase(&pods, "Succeeded"), in_phase(&pods, "Failed"));
        let active = count(pods.len()) - succeeded - failed;
        let ready = count(
            pods.iter()
                .filter(|pod| is_ready(pod) && pod.text("/status/phase") == "Running")
                .count(),
        );
        let now = self.actor.server.clock.seconds();
        self.actor
            .modify(JOBS, job.namespace(), job.name(), Endpoint::Status, |object| {
                let status = &mut object["status"];
                if status.get("startTime").is_none() && !suspended {
                    status["startTime"] = json!(now);
                }
                put(status, "active", active);
                put(status, "succeeded", succeeded);
                put(status, "failed", failed);
                status["ready"] = json!(ready);
                status["terminating"] = json!(0);
                status["uncountedTerminatedPods"] = json!({});
                if given_up {
                    status["conditions"] = conditions(
                        ["FailureTarget", "Failed"],
                        "BackoffLimitExceeded",
                        "Job has reached the specified backoff limit",
                        &now,
                    );
                }
                if succeeded >= wanted && status.get("completionTime").is_none() {
                    status["completionTime"] = json!(now);
                    status["conditions"] = conditions(
                        ["SuccessCriteriaMet", "Complete"],
                        "CompletionsReached",
                        "Reached expected number of succeeded pods",
                        &now,
                    );
                }
            })
            .await
    }
}

fn conditions(kinds: [&str; 2], reason: &str, message: &str, now: &str) -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason,
            "message": message,
        })
    };
    kinds.into_iter().map(condition).collect()
}

fn is_over(job: &Object) -> bool {
    let conditions = job
        .value()
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    conditions
        .into_iter()
        .any(|c| matches!(text(c, "/type"), "Complete" | "Failed") && text(c, "/status") == "True")
}
