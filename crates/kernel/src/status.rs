//! Writing status: through the subresource only, only when it changed, never over anybody else's fields.

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};

pub use stanchion_api::status::Status;

use crate::problem::Problem;
use crate::reconciler::Object;

/// Whether the object shows this status already. Conditions of types that are not `ours` belong to other
/// writers: they are neither compared nor written.
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

/// Writes the status by server-side apply and returns the object as the server has it now.
///
/// The uid in the patch makes it fail on an object that was deleted and made again meanwhile: a status
/// never lands on another object of the same name. What a predecessor of ours wrote under another name into
/// the same status, an apply leaves alone; it is taken away, or it would look like a change for ever.
pub async fn write<O: Object>(
    api: &Api<O>,
    object: &O,
    status: &O::Status,
    ours: &[&str],
    field_manager: &str,
) -> Result<O, Problem> {
    let status = owned_part(status.clone(), ours);
    let params = PatchParams::apply(field_manager).force();
    let applied = Patch::Apply(patch(object, &status));
    let written = api.patch_status(&object.name_any(), &params, &applied).await?;
    let shown = written.status().map(serde_json::to_value);
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

/// A merge patch that takes away the fields which are shown and not intended. Lists are left alone: the server
/// has replaced those that are ours alone, and the others are not.
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

fn patch<O: Object>(object: &O, status: &O::Status) -> Value {
    json!({
        "apiVersion": O::api_version(&()),
        "kind": O::kind(&()),
        "metadata": { "name": object.name_any(), "namespace": object.namespace(), "uid": object.uid() },
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
