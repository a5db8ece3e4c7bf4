//! A controller's own validation as a webhook: both use the same rules.

use serde_json::Value;

use super::{Denial, Request, Webhook, WebhookTarget};
use crate::problem::{Class, Problem};
use crate::reconciler::{Object, Reconciler};

/// Rejects objects that the controller would report as invalid.
pub fn validation<R: Reconciler>() -> Webhook {
    Webhook::validating(WebhookTarget::of::<R::Object>(), |request| {
        judge(request, |object: &R::Object| R::validate(object).map(drop))
    })
}

fn judge<O: Object>(
    request: &Request,
    validate: impl Fn(&O) -> Result<(), Problem>,
) -> Result<Vec<String>, Denial> {
    let Some(object) = &request.object else {
        return Ok(Vec::new());
    };
    // An invalid object may already exist: the webhook was not available when it was created. Its labels and finalizers
    // must still be changeable, also by the operator, so only changes of the spec are rejected.
    let spec = |data: &Value| data.get("spec").cloned();
    let old = request.old_object.as_ref();
    if old.is_some_and(|old| spec(&old.data) == spec(&object.data)) {
        return Ok(Vec::new());
    }
    let parsed: Result<O, _> = serde_json::to_value(object).and_then(serde_json::from_value);
    match parsed.map(|object| validate(&object)) {
        Ok(Err(problem)) if problem.class == Class::Permanent => Err(Denial::new(problem.message)),
        Ok(_) => Ok(Vec::new()),
        // The schema accepted it, so the object belongs to a newer version of the operator than this replica.
        Err(error) => Ok(vec![format!(
            "this version of the operator cannot read the object: {error}"
        )]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stanchion_api::PostgresInstance;

    use super::*;

    fn request(old: Option<Value>, new: Value) -> Request {
        let object = |spec: Value| {
            json!({
                "apiVersion": "db.example.com/v1alpha1",
                "kind": "PostgresInstance",
                "metadata": { "name": "x" },
                "spec": spec,
            })
        };
        let kind = json!({ "group": "db.example.com", "version": "v1alpha1", "kind": "PostgresInstance" });
        let resource =
            json!({ "group": "db.example.com", "version": "v1alpha1", "resource": "postgresinstances" });
        serde_json::from_value(json!({
            "uid": "1", "kind": kind, "resource": resource, "name": "x", "userInfo": {},
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "object": object(new),
            "oldObject": old.map(object),
        }))
        .unwrap()
    }

    fn spec(host: &str) -> Value {
        json!({ "host": host, "adminSecretRef": { "name": "admin" } })
    }

    fn judged(request: &Request) -> Result<Vec<String>, Denial> {
        judge(request, |instance: &PostgresInstance| {
            match instance.spec.host.as_str() {
                "wrong" => Err(Problem::permanent("InvalidSpec", "no such host")),
                "absent" => Err(Problem::dependency("Absent", "not there yet")),
                _ => Ok(()),
            }
        })
    }

    #[test]
    fn only_an_invalid_spec_is_refused() {
        assert_eq!(judged(&request(None, spec("right"))), Ok(vec![]));
        assert_eq!(judged(&request(None, spec("absent"))), Ok(vec![]));
        let denial = judged(&request(Some(spec("right")), spec("wrong"))).unwrap_err();
        assert_eq!(denial.message, "no such host");
    }

    #[test]
    fn an_invalid_object_can_still_get_a_finalizer() {
        assert_eq!(judged(&request(Some(spec("wrong")), spec("wrong"))), Ok(vec![]));
    }

    #[test]
    fn what_cannot_be_read_passes_with_a_warning() {
        let warnings = judged(&request(None, json!({ "host": 1 }))).unwrap();
        assert_eq!(warnings.len(), 1);
    }
}
