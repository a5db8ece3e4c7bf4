//! Writes the status: only through the subresource, only when it changed, never over other managers' fields.

use kube::api::{Patch, PatchParams};
use kube::core::object::HasStatus;
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};

pub use stanchion_api::status::Status;

use crate::lenient::Lenient;
use crate::problem::{Cause, Problem};
use crate::reconciler::Object;

/// Number of attempts of a write that conflicts with others.
const ATTEMPTS: usize = 5;

/// Whether the object already has this status. Conditions of types that are not `ours` belong to other writers: they
/// are neither compared nor written.
pub fn is_shown<O: Object>(object: &O, status: &O::Status, ours: &[&str]) -> bool {
    let shown = object.status().cloned().unwrap_or_default();
    owned_part(shown, ours) == owned_part(status.clone(), ours)
}

fn owned_part<S: Status>(mut status: S, ours: &[&str]) -> S {
    status
        .conditions_mut()
        .retain(|condition| ours.contains(&condition.type_.as_str()));
    status.conditions_mut().sort_by(|a, b| a.type_.cmp(&b.type_));
    status
}

/// Writes the status with server-side apply and returns the object from the server.
///
/// Returns `NotFound` if the object was deleted and created again in the meantime: a status is never written to another
/// object of the same name. An apply does not remove fields that a predecessor of ours wrote with another field
/// manager; they are removed separately, or they would always look like a change.
pub async fn write<O: Object>(
    api: &Api<Lenient<O>>,
    object: &O,
    status: &O::Status,
    ours: &[&str],
    field_manager: &str,
) -> Result<Lenient<O>, Problem> {
    let status = owned_part(status.clone(), ours);
    let written = apply(api, object, &status, field_manager).await?;
    let shown = written
        .object()
        .and_then(HasStatus::status)
        .map(serde_json::to_value);
    let (Some(Ok(shown)), Ok(intended)) = (shown, serde_json::to_value(&status)) else {
        return Ok(written);
    };
    let Some(removals) = surplus(&shown, &intended) else {
        return Ok(written);
    };
    let params = PatchParams {
        field_manager: Some(field_manager.into()),
        ..PatchParams::default()
    };
    let version = written.resource_version();
    let removed = Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "status": removals }));
    Ok(api.patch_status(&object.name_any(), &params, &removed).await?)
}

/// Applies to exactly this object. The API server ignores a uid in a patch of a status, but it checks a
/// resourceVersion; if that has changed, the object may be another one.
async fn apply<O: Object>(
    api: &Api<Lenient<O>>,
    object: &O,
    status: &O::Status,
    field_manager: &str,
) -> Result<Lenient<O>, Problem> {
    let name = object.name_any();
    let params = PatchParams::apply(field_manager).force();
    let mut version = object.resource_version();
    let mut attempts = 1..=ATTEMPTS;
    loop {
        let applied = Patch::Apply(patch(object, version.as_deref(), status));
        let last = attempts.next() == Some(ATTEMPTS);
        match api
            .patch_status(&name, &params, &applied)
            .await
            .map_err(Problem::from)
        {
            Err(problem) if problem.is(Cause::Conflict) && !last => {}
            ended => return ended,
        }
        let found = api.get_metadata_opt(&name).await?;
        let found = found.filter(|found| found.metadata.uid == object.uid());
        let gone = || {
            let message = format!("{} {name} is gone", O::kind(&()));
            Problem::dependency("NotFound", message).with_cause(Cause::NotFound)
        };
        version = found.ok_or_else(gone)?.metadata.resource_version;
    }
}

/// A merge patch that removes the fields which exist and are not intended. Lists are excluded: the server has replaced
/// those that are ours alone, and the others are not ours.
fn surplus(shown: &Value, intended: &Value) -> Option<Value> {
    let (Value::Object(shown), Value::Object(intended)) = (shown, intended) else {
        return None;
    };
    let removal = |(name, value): (&String, &Value)| {
        let removal = match intended.get(name) {
            Some(intended) => surplus(value, intended)?,
            None if value.is_array() => return None,
            None => Value::Null,
        };
        Some((name.clone(), removal))
    };
    let removals: Map<String, Value> = shown.iter().filter_map(removal).collect();
    (!removals.is_empty()).then_some(Value::Object(removals))
}

fn patch<O: Object>(object: &O, version: Option<&str>, status: &O::Status) -> Value {
    json!({
        "apiVersion": O::api_version(&()),
        "kind": O::kind(&()),
        "metadata": { "name": object.name_any(), "namespace": object.namespace(), "resourceVersion": version },
        "status": status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_that_are_not_intended_are_taken_away() {
        let shown =
            json!({ "a": 1, "old": 2, "deep": { "b": 1, "old": 2 }, "same": { "c": 1 }, "list": [1] });
        let intended = json!({ "a": 3, "deep": { "b": 1 }, "same": { "c": 1 } });
        let removals = json!({ "old": null, "deep": { "old": null } });
        assert_eq!(surplus(&shown, &intended), Some(removals));
        assert_eq!(surplus(&intended, &intended), None);
    }
}
