//! What a user does with the objects of a namespace, and sees of them.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stanchion_kernel::reconciler::Object;
use stanchion_kernel::status::Status as _;
use stanchion_testkit::crash;

use crate::namespace::TestNamespace;

/// A namespaced kind.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + 'static
{
}

impl TestNamespace {
    /// The objects of a kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies an object as the field manager `test`.
    pub async fn apply<K: Kind>(&self, name: &str, object: &Value) -> K {
        self.apply_in(&self.namespace, name, object).await
    }

    /// The same in another namespace.
    pub async fn apply_in<K: Kind>(&self, namespace: &str, name: &str, object: &Value) -> K {
        let applied = self.try_apply_in(namespace, name, object).await;
        applied.unwrap_or_else(|error| panic!("apply {name}: {error}"))
    }

    /// Applies an object that may be refused.
    pub async fn try_apply<K: Kind>(&self, name: &str, object: &Value) -> kube::Result<K> {
        self.try_apply_in(&self.namespace, name, object).await
    }

    async fn try_apply_in<K: Kind>(&self, namespace: &str, name: &str, object: &Value) -> kube::Result<K> {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams::apply("test").force();
        api.patch(name, &params, &Patch::Apply(object)).await
    }

    /// An object that must exist.
    pub async fn get<K: Kind>(&self, name: &str) -> K {
        self.api::<K>().get(name).await.unwrap()
    }

    /// Whether there is no object of this name.
    pub async fn is_absent<K: Kind>(&self, name: &str) -> bool {
        self.api::<K>().get_opt(name).await.unwrap().is_none()
    }

    /// All objects of a kind, by name.
    pub async fn all<K: Kind>(&self) -> BTreeMap<String, K> {
        let all = self.api::<K>().list(&ListParams::default()).await.unwrap();
        all.into_iter()
            .map(|object| (object.name_any(), object))
            .collect()
    }

    /// The same as JSON, without what always differs between two runs (see [`crash::normalise`]).
    pub async fn normalised<K: Kind>(&self) -> Value {
        crash::objects::<K>(self.client.clone(), &self.namespace).await
    }

    /// Merges a patch into an object, as a user would.
    pub async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        let params = PatchParams::default();
        self.api::<K>()
            .patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap()
    }

    /// Deletes an object that must exist.
    pub async fn delete<K: Kind>(&self, name: &str) {
        self.api::<K>()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Applies a Secret with these values.
    pub async fn secret(&self, name: &str, values: impl Serialize) {
        self.secret_in(&self.namespace, name, values).await;
    }

    /// The same in another namespace.
    pub async fn secret_in(&self, namespace: &str, name: &str, values: impl Serialize) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values,
        });
        self.apply_in::<Secret>(namespace, name, &secret).await;
    }

    /// The events about the objects of this name, oldest first.
    pub async fn events_about(&self, name: &str) -> Vec<Event> {
        let listed = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let mut events = listed.items;
        events.retain(|event| {
            let regarding = event.regarding.as_ref();
            regarding.and_then(|regarding| regarding.name.as_deref()) == Some(name)
        });
        events.sort_by_key(|event| event.event_time.clone());
        events
    }

    /// Waits until a condition of an object has this status and reason for the current generation.
    pub async fn until_condition<K: Object>(&self, name: &str, kind: &str, status: &str, reason: &str) -> K {
        let wanted = Some((status.to_owned(), reason.to_owned()));
        self.wait()
            .until(&self.api::<K>(), name, |object: &K| {
                condition(object, kind) == wanted
            })
            .await
    }
}

/// A condition's status and reason, if it is for the current generation.
pub fn condition<K: Object>(object: &K, kind: &str) -> Option<(String, String)> {
    let conditions = object.status()?.conditions();
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    (found.observed_generation == object.meta().generation)
        .then(|| (found.status.clone(), found.reason.clone()))
}

/// A condition's message; empty if there is no such condition.
pub fn message<K: Object>(object: &K, kind: &str) -> String {
    let Some(status) = object.status() else {
        return String::new();
    };
    let found = status
        .conditions()
        .iter()
        .find(|condition| condition.type_ == kind);
    found.map(|found| found.message.clone()).unwrap_or_default()
}

/// The values of a Secret, as text.
pub fn secret_values(secret: Secret) -> BTreeMap<String, String> {
    let data = secret.data.unwrap_or_default();
    data.into_iter()
        .map(|(key, value)| (key, String::from_utf8(value.0).unwrap()))
        .collect()
}
