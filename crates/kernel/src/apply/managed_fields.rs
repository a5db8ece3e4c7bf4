//! Takes over the managed fields of a predecessor, as client-go's `csaupgrade` does.
//!
//! Server-side apply removes a field that is no longer intended only if the same manager applied it. Fields that
//! another operator wrote with plain updates would stay forever: a wrong variable in a container's environment, next to
//! the right ones.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Value, json};

/// A manager that keeps its fields: Kubernetes' own controllers write to objects of others.
const OTHERS: &str = "kube-controller-manager";

/// The managed fields after the takeover: everything that others have set with updates belongs to us. `None` if there
/// is nothing to take over, or some fields already are ours.
pub(crate) fn adopt_fields(entries: &[ManagedFieldsEntry], manager: &str) -> Option<Vec<ManagedFieldsEntry>> {
    let is_ours = |entry: &ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply")
    };
    if entries.iter().any(is_ours) {
        return None;
    }
    let is_taken = |entry: &&ManagedFieldsEntry| {
        let theirs = entry.manager.as_deref() != Some(OTHERS) && entry.operation.as_deref() == Some("Update");
        theirs && entry.subresource.as_deref().is_none_or(str::is_empty)
    };
    let (taken, mut kept): (Vec<&ManagedFieldsEntry>, Vec<&ManagedFieldsEntry>) =
        entries.iter().partition(is_taken);
    let mut fields = Value::Null;
    let mut holds = Vec::new();
    for entry in &taken {
        let mut theirs = entry
            .fields_v1
            .as_ref()
            .map_or(Value::Null, |fields| fields.0.clone());
        // Finalizers stay with their manager; taking them over could remove them, and the object would be deleted too
        // early.
        if let Some(held) = theirs.get_mut("f:metadata").and_then(take_finalizers) {
            holds.push(ManagedFieldsEntry {
                fields_v1: Some(FieldsV1(held)),
                ..(*entry).clone()
            });
        }
        join(&mut fields, &theirs);
    }
    let model = *taken.last()?;
    let ours = ManagedFieldsEntry {
        manager: Some(manager.into()),
        operation: Some("Apply".into()),
        fields_v1: Some(FieldsV1(fields)),
        ..model.clone()
    };
    kept.extend(&holds);
    kept.push(&ours);
    Some(kept.into_iter().cloned().collect())
}

/// Removes the finalizers from these metadata fields and returns them.
fn take_finalizers(metadata: &mut Value) -> Option<Value> {
    let finalizers = metadata.as_object_mut()?.remove("f:finalizers")?;
    Some(json!({ "f:metadata": { "f:finalizers": finalizers } }))
}

/// Adds one set of fields to another.
fn join(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (field, inside) in more {
                join(into.entry(field.clone()).or_insert(Value::Null), inside);
            }
        }
        (into @ Value::Null, more) => *into = more.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: Value) -> Vec<ManagedFieldsEntry> {
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn what_was_updated_becomes_ours_and_a_controllers_own_stays() {
        let before = entries(json!([
            { "manager": "old", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
              "fieldsV1": { "f:spec": { "f:replicas": {} } } },
            { "manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
              "fieldsV1": { "f:spec": { "f:paused": {} } } },
            { "manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
              "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:status": {} } },
        ]));
        let after = adopt_fields(&before, "ours").unwrap();
        assert_eq!(after.len(), 2);
        assert_eq!(after[0], before[2]);
        assert_eq!(
            serde_json::to_value(&after[1]).unwrap(),
            json!({ "manager": "ours", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": { "f:spec": { "f:replicas": {}, "f:paused": {} } } })
        );
        assert_eq!(adopt_fields(&after, "ours"), None, "once");
    }

    #[test]
    fn who_holds_an_object_up_still_does() {
        let before = entries(json!([
            { "manager": "helm-controller", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
              "fieldsV1": { "f:metadata": { "f:finalizers": { "v:\"flux\"": {} }, "f:labels": {} }, "f:spec": {} } },
        ]));
        let after = adopt_fields(&before, "ours").unwrap();
        let fields: Vec<(Option<&str>, Value)> = after
            .iter()
            .map(|entry| {
                (
                    entry.manager.as_deref(),
                    entry.fields_v1.as_ref().unwrap().0.clone(),
                )
            })
            .collect();
        assert_eq!(
            fields,
            [
                (
                    Some("helm-controller"),
                    json!({ "f:metadata": { "f:finalizers": { "v:\"flux\"": {} } } })
                ),
                (
                    Some("ours"),
                    json!({ "f:metadata": { "f:labels": {} }, "f:spec": {} })
                ),
            ]
        );
    }

    #[test]
    fn nothing_is_taken_from_nobody() {
        assert_eq!(adopt_fields(&[], "ours"), None);
    }
}
