//! Whether a child has to be written: a pure decision about what we intend and what is there.
//!
//! A child is written by server-side apply, with one field manager a controller. It is skipped when the
//! intent has not changed since it was written (its hash is an annotation, so a restart finds it) and
//! nobody has changed what we wrote. Values of Secrets are compared, and never hashed into an annotation.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::context::Subject;
use crate::problem::Problem;
use crate::watch::MANAGED_BY;

/// Where the hash of the last applied intent is kept.
pub const INTENT: &str = "stanchion.dev/intent";

/// Whether an object that is there and not ours may be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// Only an object whose controller is the subject.
    Refuse,
    /// Also one that nobody controls: the user asked for it, or it is known to be a predecessor's.
    Adopt,
}

/// A child as it shall be, with owner, label and hash in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    body: Value,
}

impl Intent {
    /// The intent to have this child. `child` must be a whole object with `apiVersion` and `kind`.
    pub fn new(child: &impl Serialize, subject: &Subject) -> Result<Self, Problem> {
        let unreadable = |error| {
            Problem::permanent("Unserializable", "a child could not be written down").caused_by(error)
        };
        let mut body = serde_json::to_value(child).map_err(unreadable)?;
        let owner = serde_json::to_value(&subject.owner).map_err(unreadable)?;
        let metadata = entry(&mut body, "metadata");
        entry(metadata, "labels")[MANAGED_BY.0] = Value::String(MANAGED_BY.1.into());
        metadata["ownerReferences"] = Value::Array(vec![owner]);
        metadata["namespace"] = Value::String(subject.key.namespace.clone());
        let hash = hash(&body);
        entry(entry(&mut body, "metadata"), "annotations")[INTENT] = Value::String(hash);
        Ok(Self { body })
    }

    /// The child's name.
    pub fn name(&self) -> &str {
        self.body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The body of the apply patch.
    pub fn body(&self) -> &Value {
        &self.body
    }
}

/// Decides whether to write: `Ok(None)` when the child is as intended.
pub fn decide<K: Serialize + kube::Resource<DynamicType = ()>>(
    intent: Intent,
    live: Option<&K>,
    subject: &Subject,
    takeover: Takeover,
) -> Result<Option<Intent>, Problem> {
    let Some(live) = live else { return Ok(Some(intent)) };
    check_owner::<K>(live.meta(), subject, takeover)?;
    let live = serde_json::to_value(live)
        .map_err(|error| Problem::human("UnreadableAnswer", "a child could not be read").caused_by(error))?;
    let same_intent = annotated(&live) == annotated(&intent.body);
    Ok((!(same_intent && contains(&live, &intent.body))).then_some(intent))
}

/// The hash that an object carries.
fn annotated(body: &Value) -> Option<&str> {
    body.pointer("/metadata/annotations")?.get(INTENT)?.as_str()
}

/// Whether the subject controls this object.
pub fn is_owned(meta: &ObjectMeta, subject: &Subject) -> bool {
    meta.owner_references
        .iter()
        .flatten()
        .any(|owner| owner.uid == subject.uid && owner.controller == Some(true))
}

fn check_owner<K: kube::Resource<DynamicType = ()>>(
    meta: &ObjectMeta,
    subject: &Subject,
    takeover: Takeover,
) -> Result<(), Problem> {
    let controlled = meta
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true));
    if is_owned(meta, subject) || (takeover == Takeover::Adopt && !controlled) {
        return Ok(());
    }
    let name = meta.name.as_deref().unwrap_or_default();
    Err(Problem::human(
        "NotOurs",
        format!(
            "{} {name} exists and does not belong to {} {}; delete it or choose another name",
            K::kind(&()),
            subject.owner.kind,
            subject.owner.name,
        ),
    ))
}

/// A stable hash of an intent. The values of a Secret are left out: a hash in an annotation could be
/// guessed at by whoever may read metadata only.
fn hash(body: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, body, body["kind"] == "Secret");
    BASE64_URL_SAFE_NO_PAD
        .encode(hasher.finalize())
        .chars()
        .take(22)
        .collect()
}

fn feed(hasher: &mut Sha256, value: &Value, secret: bool) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                hasher.update(b"k");
                hasher.update(key.as_bytes());
                match &map[key] {
                    Value::Object(values) if secret && (key == "data" || key == "stringData") => {
                        let names = values.keys().cloned().map(Value::String).collect();
                        feed(hasher, &Value::Array(names), false);
                    }
                    other => feed(hasher, other, false),
                }
            }
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(hasher, item, false);
            }
            hasher.update(b"]");
        }
        scalar => {
            hasher.update(b"v");
            hasher.update(scalar.to_string().as_bytes());
        }
    }
}

/// Whether everything that we intend is there, whatever the server or others have added.
fn contains(live: &Value, intent: &Value) -> bool {
    match (live, intent) {
        (Value::Object(live), Value::Object(intent)) => {
            intent.iter().all(|(key, value)| match live.get(key) {
                Some(found) => contains(found, value),
                None => is_empty(value),
            })
        }
        (Value::Array(live), Value::Array(intent)) => contains_list(live, intent),
        (live, intent) => live == intent,
    }
}

/// Lists of named things are compared by name, for servers and others add to them; all others as they stand.
fn contains_list(live: &[Value], intent: &[Value]) -> bool {
    let named = |key| {
        intent
            .iter()
            .all(|item| item.get(key).is_some_and(Value::is_string))
    };
    let Some(key) = ["name", "uid", "mountPath", "ip"]
        .into_iter()
        .find(|key| !intent.is_empty() && named(*key))
    else {
        return live.len() == intent.len()
            && live
                .iter()
                .zip(intent)
                .all(|(live, intent)| contains(live, intent));
    };
    intent.iter().all(|item| {
        live.iter()
            .filter(|candidate| candidate.get(key) == item.get(key))
            .any(|found| contains(found, item))
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The object under this key, made when it is not there.
fn entry<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value[key].is_object() {
        value[key] = Value::Object(Map::new());
    }
    &mut value[key]
}
