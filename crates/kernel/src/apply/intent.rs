//! The intended state of a child, and the condition for writing it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::core::{ApiResource, GroupVersionKind};
use serde::Serialize;
use serde_json::{Map, Value};

use super::hash::hash;
use crate::context::Parent;
use crate::problem::Problem;
use crate::watch::MANAGED_BY;

/// The annotation with the hash of the last applied intent.
pub const INTENT: &str = "stanchion.dev/intent";

/// The intended state of a child, including owner, label and hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    resource: ApiResource,
    body: Value,
    guard: Guard,
}

/// The condition for writing an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Guard {
    /// No object has the name.
    Absent,
    /// The object has this uid. Its fields may belong to any manager.
    Uid(String),
}

impl Intent {
    /// The intent to have this child. `child` must be a complete object with `apiVersion` and `kind`.
    pub fn new(child: &impl Serialize, parent: &Parent) -> Result<Self, Problem> {
        let unreadable =
            |error| Problem::permanent("Unserializable", "a child could not be serialized").caused_by(error);
        let mut body = serde_json::to_value(child).map_err(unreadable)?;
        let resource = resource_of(&body)?;
        plain_data(&mut body);
        // Only of the child: the fields that are added below always exist, so a comparison notices their absence
        // without a hash.
        let hash = hash(&body);
        let owner = serde_json::to_value(&parent.owner).map_err(unreadable)?;
        let metadata = entry(&mut body, "metadata");
        let labels = entry(metadata, "labels");
        // A child that is selected by another value sets the label itself.
        if !labels[MANAGED_BY.0].is_string() {
            labels[MANAGED_BY.0] = Value::String(MANAGED_BY.1.into());
        }
        entry(metadata, "annotations")[INTENT] = Value::String(hash);
        metadata["ownerReferences"] = Value::Array(vec![owner]);
        metadata["namespace"] = Value::String(parent.key.namespace.clone());
        Ok(Self {
            resource,
            body,
            guard: Guard::Absent,
        })
    }

    /// The intent to have an object that outlives the subject: it has no owner reference.
    pub fn to_keep(child: &impl Serialize, parent: &Parent) -> Result<Self, Problem> {
        let mut intent = Self::new(child, parent)?;
        if let Some(metadata) = intent.body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("ownerReferences");
        }
        Ok(intent)
    }

    /// This intent, for a kind whose plural does not follow from its name, or that the cluster serves in another way.
    #[must_use]
    pub fn served_as(self, resource: &ApiResource) -> Self {
        Self {
            resource: resource.clone(),
            ..self
        }
    }

    /// This intent, to be written over the object with this uid.
    #[must_use]
    pub fn over(self, uid: &str) -> Self {
        Self {
            guard: Guard::Uid(uid.into()),
            ..self
        }
    }

    /// How the API server serves the child.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// The child's kind.
    pub fn kind(&self) -> &str {
        &self.resource.kind
    }

    /// The child's name.
    pub fn name(&self) -> &str {
        self.body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The intended child.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The hash on the intended child.
    pub(crate) fn hash(&self) -> Option<&str> {
        annotated(&self.body)
    }

    /// The body of the apply patch, with a guard so that it changes the right object or none: the uid, or a
    /// resourceVersion that no object ever has, which the API server ignores only if the object does not exist.
    pub(crate) fn patch(&self) -> Value {
        let mut body = self.body.clone();
        let metadata = entry(&mut body, "metadata");
        match &self.guard {
            Guard::Absent => metadata["resourceVersion"] = "1".into(),
            Guard::Uid(uid) => metadata["uid"] = uid.as_str().into(),
        }
        body
    }

    /// Whether it overwrites a known object, including the fields of other managers.
    pub(crate) fn replaces(&self) -> bool {
        matches!(self.guard, Guard::Uid(_))
    }
}

/// The kind of an object, with the usual plural.
fn resource_of(body: &Value) -> Result<ApiResource, Problem> {
    let field = |name: &str| body.get(name).and_then(Value::as_str);
    let (Some(api_version), Some(kind)) = (field("apiVersion"), field("kind")) else {
        let message = "a child could not be serialized: it has no apiVersion or no kind";
        return Err(Problem::permanent("Unserializable", message));
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Ok(ApiResource::from_gvk(&GroupVersionKind::gvk(
        group, version, kind,
    )))
}

/// The hash on an object.
pub(crate) fn annotated(body: &Value) -> Option<&str> {
    body.pointer("/metadata/annotations")?.get(INTENT)?.as_str()
}

/// Moves `stringData` of a Secret to `data`: the server stores only `data`, so only that can be compared.
fn plain_data(body: &mut Value) {
    if body["kind"] != "Secret" {
        return;
    }
    let plain = body.as_object_mut().and_then(|body| body.remove("stringData"));
    if let Some(Value::Object(plain)) = plain {
        let data = entry(body, "data");
        for (key, value) in plain {
            data[key] = Value::String(BASE64_STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    }
}

/// The object under this key, created if it is missing.
fn entry<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value[key].is_object() {
        value[key] = Value::Object(Map::new());
    }
    &mut value[key]
}
