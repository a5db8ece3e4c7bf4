//! What a child shall be, and over what it may be written.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};

use super::hash::hash;
use crate::context::Subject;
use crate::problem::Problem;
use crate::watch::MANAGED_BY;

/// Where the hash of the last applied intent is kept.
pub const INTENT: &str = "stanchion.dev/intent";

/// A child as it shall be, with owner, label and hash in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    body: Value,
    guard: Guard,
}

/// Over what an intent may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Guard {
    /// Over nothing: whoever has the name already keeps it.
    Absent,
    /// Over the object with this uid, whoever else has set its fields.
    Uid(String),
}

impl Intent {
    /// The intent to have this child. `child` must be a whole object with `apiVersion` and `kind`.
    pub fn new(child: &impl Serialize, subject: &Subject) -> Result<Self, Problem> {
        let unreadable = |error| {
            Problem::permanent("Unserializable", "a child could not be written down").caused_by(error)
        };
        let mut body = serde_json::to_value(child).map_err(unreadable)?;
        plain_data(&mut body);
        // Of the child alone: what is added below is always there, so that its absence is seen without a hash.
        let hash = hash(&body);
        let owner = serde_json::to_value(&subject.owner).map_err(unreadable)?;
        let metadata = entry(&mut body, "metadata");
        let labels = entry(metadata, "labels");
        // A child that is found by another value says so itself.
        if !labels[MANAGED_BY.0].is_string() {
            labels[MANAGED_BY.0] = Value::String(MANAGED_BY.1.into());
        }
        entry(metadata, "annotations")[INTENT] = Value::String(hash);
        metadata["ownerReferences"] = Value::Array(vec![owner]);
        metadata["namespace"] = Value::String(subject.key.namespace.clone());
        Ok(Self {
            body,
            guard: Guard::Absent,
        })
    }

    /// The intent to have something that stays when the subject goes: it has no owner.
    pub fn to_keep(child: &impl Serialize, subject: &Subject) -> Result<Self, Problem> {
        let mut intent = Self::new(child, subject)?;
        if let Some(metadata) = intent.body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("ownerReferences");
        }
        Ok(intent)
    }

    /// The same, to be written over the object with this uid.
    #[must_use]
    pub fn over(self, uid: &str) -> Self {
        Self {
            guard: Guard::Uid(uid.into()),
            ..self
        }
    }

    /// The child's kind.
    pub fn kind(&self) -> &str {
        self.body.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The child's name.
    pub fn name(&self) -> &str {
        self.body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The child as it shall be.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The hash that the child shall carry.
    pub(crate) fn hash(&self) -> Option<&str> {
        annotated(&self.body)
    }

    /// The body of the apply patch, with what makes sure that it hits the right object or none: its uid, or a
    /// version that no object ever has, which the API server ignores only where there is nothing.
    pub(crate) fn patch(&self) -> Value {
        let mut body = self.body.clone();
        let metadata = entry(&mut body, "metadata");
        match &self.guard {
            Guard::Absent => metadata["resourceVersion"] = "1".into(),
            Guard::Uid(uid) => metadata["uid"] = uid.as_str().into(),
        }
        body
    }

    /// Whether it is to be written over an object that was seen, whoever else has set its fields.
    pub(crate) fn replaces(&self) -> bool {
        matches!(self.guard, Guard::Uid(_))
    }
}

/// The hash that an object carries.
pub(crate) fn annotated(body: &Value) -> Option<&str> {
    body.pointer("/metadata/annotations")?.get(INTENT)?.as_str()
}

/// What a Secret says in `stringData` the server keeps in `data`, where alone it can be compared.
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

/// The object under this key, made when it is not there.
fn entry<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value[key].is_object() {
        value[key] = Value::Object(Map::new());
    }
    &mut value[key]
}
