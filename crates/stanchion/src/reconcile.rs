//! `stanchion roles reconcile`: triggers a reconcile of a `PostgresPolicy`.
//!
//! The request is an annotation with the current time. The operator copies that time into the status when it has tried,
//! and again when it has succeeded, so the result of an older pass is not mistaken for the answer.

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_roles_cli::{Cluster, ReconcileArgs};

use stanchion_fleet::kubeconfig;

const REQUESTED_AT: &str = "reconcile.pgroles.io/requestedAt";

/// The cluster of KUBECONFIG, or the one that this process runs in.
pub(crate) struct CurrentCluster;

impl Cluster for CurrentCluster {
    async fn reconcile(&self, request: &ReconcileArgs) -> Result<String, String> {
        let config = kubeconfig::infer().await.map_err(|error| error.to_string())?;
        let client = Client::try_from(config).map_err(|error| error.to_string())?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("pgroles.io", "v1alpha1", "PostgresPolicy"));
        let policies: Api<DynamicObject> = Api::namespaced_with(client, &request.namespace, &kind);
        ask(&policies, request).await
    }
}

async fn ask(policies: &Api<DynamicObject>, request: &ReconcileArgs) -> Result<String, String> {
    let name = &request.resource.0;
    let policy = format!("PostgresPolicy {}/{name}", request.namespace);
    let asked = Timestamp::now();
    let annotation = json!({"metadata": {"annotations": {REQUESTED_AT: asked.to_string()}}});
    policies
        .patch(name, &PatchParams::default(), &Patch::Merge(annotation))
        .await
        .map_err(|error| format!("{policy}: {error}"))?;
    if !request.wait {
        return Ok(format!("{policy}: reconciliation requested at {asked}"));
    }
    let answered = await_condition(policies.clone(), name, |policy: Option<&DynamicObject>| {
        policy.is_none_or(|policy| answer(&policy.data, asked).is_some())
    });
    let seen = match tokio::time::timeout(request.timeout, answered).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => return Err(format!("{policy}: {error}")),
        Err(_) => {
            return Err(format!(
                "{policy}: the operator has not answered within {} s; does it run, and is the policy suspended?",
                request.timeout.as_secs()
            ));
        }
    };
    let Some(object) = seen else {
        return Err(format!("{policy} was deleted"));
    };
    match answer(&object.data, asked) {
        Some(Ok(())) => Ok(format!("{policy}: reconciled")),
        Some(Err(reason)) => Err(format!("{policy}: {reason}")),
        None => Err(format!(
            "{policy}: the operator no longer reports a result for this request"
        )),
    }
}

/// The result of a request, if the operator has processed it.
fn answer(policy: &Value, asked: Timestamp) -> Option<Result<(), String>> {
    let reached = |field: &str| {
        policy
            .pointer(&format!("/status/{field}"))
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<Timestamp>().ok())
            .is_some_and(|time| time >= asked)
    };
    if reached("lastHandledReconcileAt") {
        return Some(Ok(()));
    }
    reached("lastAttemptedReconcileAt").then(|| Err(reason(policy)))
}

/// Why a policy is not ready, from its status.
fn reason(policy: &Value) -> String {
    let conditions = policy.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    let text = |field| {
        ready
            .and_then(|condition| condition.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match (text("reason"), text("message")) {
        ("", _) => "it did not succeed, and its status does not say why".to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn an_older_pass_is_no_answer() {
        assert_eq!(answer(&json!({}), at(0)), None);
        let older = json!({"status": {
            "lastHandledReconcileAt": at(-1).to_string(), "lastAttemptedReconcileAt": at(-1).to_string()
        }});
        assert_eq!(answer(&older, at(0)), None);
    }

    #[test]
    fn success_is_a_request_that_was_handled() {
        let handled = json!({"status": {"lastHandledReconcileAt": at(0).to_string()}});
        assert_eq!(answer(&handled, at(0)), Some(Ok(())));
        let of_somebody_later = json!({"status": {"lastHandledReconcileAt": at(5).to_string()}});
        assert_eq!(answer(&of_somebody_later, at(0)), Some(Ok(())));
    }

    #[test]
    fn failure_is_a_request_that_was_only_tried() {
        let tried = json!({"status": {
            "lastHandledReconcileAt": at(-9).to_string(),
            "lastAttemptedReconcileAt": at(0).to_string(),
            "conditions": [
                {"type": "Drifted", "status": "True", "reason": "DriftDetected"},
                {"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": "permission denied"}
            ]
        }});
        assert_eq!(
            answer(&tried, at(0)),
            Some(Err("ApplyFailed: permission denied".to_owned()))
        );
    }
}
