//! Finalizers: added before any outside work, removed one entry at a time, without touching others.
//!
//! Both writes are JSON patches with a `test` of the entry that they change, so that they neither overwrite the entries
//! of other controllers nor depend on the rest of the object.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, TestOperation};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::lenient::Lenient;
use crate::problem::{Cause, Problem};
use crate::reconciler::Object;

/// Number of attempts of a removal within one pass.
const ATTEMPTS: usize = 5;

/// Whether the object has the finalizer.
pub fn has<O: Object>(object: &O, finalizer: &str) -> bool {
    object.finalizers().iter().any(|entry| entry == finalizer)
}

/// Adds the finalizer and returns the object with it. The API server rejects it on an object that is being deleted, so
/// a stale read cannot block a deletion.
pub async fn add<O: Object>(
    api: &Api<Lenient<O>>,
    object: &O,
    finalizer: &str,
    field_manager: &str,
) -> Result<Lenient<O>, Problem> {
    let present = object.finalizers();
    let add = if present.is_empty() {
        vec![
            test(&["metadata", "finalizers"], Value::Null),
            insert(&["metadata", "finalizers"], json!([finalizer])),
        ]
    } else {
        vec![
            test(&["metadata", "finalizers"], json!(present)),
            insert(&["metadata", "finalizers", "-"], json!(finalizer)),
        ]
    };
    patch(api, object, add, field_manager).await
}

/// Removes the finalizer. Succeeds if the finalizer or the object is already gone.
pub async fn remove<O: Object>(
    api: &Api<Lenient<O>>,
    object: &O,
    finalizer: &str,
    field_manager: &str,
) -> Result<(), Problem> {
    let mut current = object.finalizers().to_vec();
    for attempt in 1.. {
        let Some(index) = current.iter().position(|entry| entry == finalizer) else {
            return Ok(());
        };
        let index = index.to_string();
        let entry = ["metadata", "finalizers", index.as_str()];
        let removal = vec![
            test(&entry, json!(finalizer)),
            PatchOperation::Remove(RemoveOperation {
                path: PointerBuf::from_tokens(entry),
            }),
        ];
        match patch(api, object, removal, field_manager).await {
            Ok(_) => return Ok(()),
            Err(problem) if problem.is(Cause::NotFound) => return Ok(()),
            Err(problem) if problem.is(Cause::Conflict) && attempt < ATTEMPTS => {
                match api.get_opt(&object.name_any()).await? {
                    Some(newer) if newer.uid() == object.uid() => current = newer.finalizers().to_vec(),
                    // The object is gone, or another one has its name: it is not ours.
                    _ => return Ok(()),
                }
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

async fn patch<O: Object>(
    api: &Api<Lenient<O>>,
    object: &O,
    mut operations: Vec<PatchOperation>,
    field_manager: &str,
) -> Result<Lenient<O>, Problem> {
    operations.insert(0, test(&["metadata", "uid"], json!(object.uid())));
    let params = PatchParams {
        field_manager: Some(field_manager.into()),
        ..PatchParams::default()
    };
    let patch = Patch::Json::<()>(json_patch::Patch(operations));
    Ok(api.patch(&object.name_any(), &params, &patch).await?)
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: PointerBuf::from_tokens(path.iter().copied()),
        value,
    })
}

fn insert(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation {
        path: PointerBuf::from_tokens(path.iter().copied()),
        value,
    })
}
