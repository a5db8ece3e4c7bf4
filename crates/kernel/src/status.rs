//! Writing status: through the subresource only, only when it changed, never over anybody else's fields.

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

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
/// never lands on another object of the same name.
pub async fn write<O: Object>(
    api: &Api<O>,
    object: &O,
    status: &O::Status,
    ours: &[&str],
    field_manager: &str,
) -> Result<O, Problem> {
    let patch = patch(object, &owned_part(status.clone(), ours));
    let params = PatchParams::apply(field_manager).force();
    Ok(api
        .patch_status(&object.name_any(), &params, &Patch::Apply(&patch))
        .await?)
}

fn patch<O: Object>(object: &O, status: &O::Status) -> Value {
    json!({
        "apiVersion": O::api_version(&()),
        "kind": O::kind(&()),
        "metadata": { "name": object.name_any(), "namespace": object.namespace(), "uid": object.uid() },
        "status": status,
    })
}
