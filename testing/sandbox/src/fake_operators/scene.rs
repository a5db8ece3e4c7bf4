//! Common functions of the simulated operators.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt as _};
use rand::Rng as _;
use rand::distr::Alphanumeric;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::Charts;

const MANAGER: &str = "sandbox-players";
const PASSWORD_LENGTH: usize = 24;

/// The cluster and the simulated kind.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    pub(super) pace: Duration,
    pub(super) charts: Charts,
}

impl Scene {
    /// The API of the simulated kind.
    pub(super) fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.resource)
    }

    /// Waits for the duration of a step.
    pub(super) async fn wait(&self) {
        tokio::time::sleep(self.pace).await;
    }

    /// Writes the status of an object.
    pub(super) async fn say(&self, object: &DynamicObject, status: Value) -> Result<(), kube::Error> {
        let api = self.api(&object.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&object.name_any(), &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Creates or updates an object that the given object owns.
    pub(super) async fn own<K>(
        &self,
        object: &DynamicObject,
        name: &str,
        mut child: K,
    ) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        child.meta_mut().name = Some(name.to_owned());
        child.meta_mut().owner_references = object
            .controller_owner_ref(&self.resource)
            .map(|owner| vec![owner]);
        let api: Api<K> = Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        let params = PatchParams::apply(MANAGER).force();
        api.patch(name, &params, &Patch::Apply(&child)).await?;
        Ok(())
    }
}

/// Whether the status already contains this text for the current spec.
pub(super) fn is_said(object: &DynamicObject, path: &str, text: &str) -> bool {
    let status = |path| object.data.pointer(path);
    let observed = status("/status/observedGeneration").and_then(Value::as_i64);
    observed == object.metadata.generation && status(path).and_then(Value::as_str) == Some(text)
}

/// A number in an object, or a default.
pub(super) fn number(object: &Value, path: &str, otherwise: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(otherwise)
}

/// A text in an object, or an empty one.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The current time, in the format of objects.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A condition of an object.
pub(super) fn condition(
    object: &DynamicObject,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": object.metadata.generation,
        "lastTransitionTime": now(),
    })
}

/// A new password.
pub(super) fn password() -> String {
    let letters = rand::rng().sample_iter(Alphanumeric);
    letters.take(PASSWORD_LENGTH).map(char::from).collect()
}
