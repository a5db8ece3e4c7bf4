//! What every player uses.

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

/// The cluster, and the kind that is played.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    pub(super) pace: Duration,
    pub(super) charts: Charts,
}

impl Scene {
    /// The objects of the kind that is played.
    pub(super) fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.resource)
    }

    /// Takes its time.
    pub(super) async fn wait(&self) {
        tokio::time::sleep(self.pace).await;
    }

    /// Writes into the status of an object.
    pub(super) async fn say(&self, object: &DynamicObject, status: Value) -> Result<(), kube::Error> {
        let api = self.api(&object.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&object.name_any(), &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Makes something that belongs to the object and goes with it, or brings it back to what it should be.
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

/// Whether the status already says this about the spec as it is.
pub(super) fn is_said(object: &DynamicObject, path: &str, text: &str) -> bool {
    let status = |path| object.data.pointer(path);
    let observed = status("/status/observedGeneration").and_then(Value::as_i64);
    observed == object.metadata.generation && status(path).and_then(Value::as_str) == Some(text)
}

/// A number of an object, or another one.
pub(super) fn number(object: &Value, path: &str, otherwise: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(otherwise)
}

/// A text of an object, or none.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The present second, as objects show it.
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
