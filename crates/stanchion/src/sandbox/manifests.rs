//! Applies objects of any kind.

use kube::api::{DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::{self, Scope};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client};
use serde_json::Value;
use stanchion_kernel::problem::chain;

use super::error::SandboxError;

/// The field manager of the sandbox.
const MANAGER: &str = "stanchion-sandbox";

/// The documents of a manifest.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, SandboxError> {
    serde_saphyr::from_multiple(text).map_err(|error| SandboxError::Manifest(error.to_string()))
}

/// All of our CRDs.
pub(super) fn definitions() -> Result<Vec<Value>, SandboxError> {
    let crds = stanchion_api::crds().into_iter().map(serde_json::to_value);
    let crds: Result<Vec<Value>, serde_json::Error> = crds.collect();
    crds.map_err(|error| SandboxError::Manifest(error.to_string()))
}

/// Applies CRDs, and waits until they are served.
pub(super) async fn define(client: &Client, crds: &[Value]) -> Result<(), SandboxError> {
    let definitions = Api::all(client.clone());
    for crd in crds {
        apply(client, crd).await?;
        let name = crd.pointer("/metadata/name").and_then(Value::as_str);
        let served = await_condition(
            definitions.clone(),
            name.unwrap_or_default(),
            conditions::is_crd_established(),
        );
        served.await.map_err(|error| refused(crd, &error))?;
    }
    Ok(())
}

/// Applies one object, as `kubectl apply --server-side` does.
pub(super) async fn apply(client: &Client, object: &Value) -> Result<(), SandboxError> {
    let (api, parsed) = addressed(client, object).await?;
    let name = parsed.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(&parsed))
        .await
        .map_err(|error| refused(object, &error))?;
    Ok(())
}

/// Whether an object of this kind and name exists.
pub(super) async fn exists(client: &Client, object: &Value) -> Result<bool, SandboxError> {
    let (api, parsed) = addressed(client, object).await?;
    let found = api
        .get_metadata_opt(&parsed.metadata.name.unwrap_or_default())
        .await?;
    Ok(found.is_some())
}

/// An object, and the API of its kind; the default namespace is `default`.
async fn addressed(
    client: &Client,
    object: &Value,
) -> Result<(Api<DynamicObject>, DynamicObject), SandboxError> {
    let mut parsed: DynamicObject =
        serde_json::from_value(object.clone()).map_err(|error| refused(object, &error))?;
    let types = parsed.types.clone().unwrap_or_default();
    let kind = GroupVersionKind::try_from(&types).map_err(|error| refused(object, &error))?;
    let (resource, capabilities) = discovery::pinned_kind(client, &kind)
        .await
        .map_err(|error| refused(object, &error))?;
    let api = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = parsed.metadata.namespace.get_or_insert_with(|| "default".into());
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    Ok((api, parsed))
}

fn refused(object: &Value, error: &dyn std::error::Error) -> SandboxError {
    let word = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("?");
    SandboxError::Apply {
        object: format!("{}/{}", word("/kind"), word("/metadata/name")),
        why: chain(error),
    }
}
