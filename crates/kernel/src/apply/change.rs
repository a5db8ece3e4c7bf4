//! Changes of objects: `plan` returns them, and the [`Writer`](crate::Writer) carries them out in their order.

use std::fmt;

use kube::Resource;
use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Intent, Takeover};

/// One change of an object in the namespace of the reconciled object.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectChange {
    /// Creates or overwrites an object, as [`decide`](super::decide) or the child cache decided.
    Apply(Intent),
    /// Overwrites an object, and removes the fields that a predecessor has set and that are not intended.
    AdoptFields(Intent, Box<ObjectMeta>),
    /// Creates an object that the child cache does not know. If one exists, it is compared first.
    Create(Intent, Takeover),
    /// Reads and compares an object: somebody may have changed it, or the server may only write a value in another form.
    Verify(Intent, Takeover),
    /// Changes some fields of an object's spec, if it is still the observed one. All others stay with their managers.
    Merge(Observed, Value),
    /// Deletes an object, if it is still the observed one.
    Delete(Observed),
}

/// An object that was observed: a change of it does not reach another object of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// How the API server serves it.
    pub resource: ApiResource,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: Option<String>,
}

impl Observed {
    /// An observed object. `kind` is `&()` for a kind with a type, and how it is served for a third-party kind.
    pub fn new<K: Resource>(meta: &ObjectMeta, kind: &K::DynamicType) -> Self {
        Self {
            resource: ApiResource::erase::<K>(kind),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone(),
        }
    }
}

impl ObjectChange {
    /// Overwrites an object; the fields of this live object become ours first, if there is one.
    pub fn adopting(intent: Intent, live: Option<&ObjectMeta>) -> Self {
        match live {
            Some(live) => Self::AdoptFields(intent, Box::new(live.clone())),
            None => Self::Apply(intent),
        }
    }

    /// Changes some fields of an observed object's spec.
    pub fn merge<K: Resource>(meta: &ObjectMeta, kind: &K::DynamicType, spec: Value) -> Self {
        Self::Merge(Observed::new::<K>(meta, kind), spec)
    }

    /// Deletes an observed object.
    pub fn delete<K: Resource>(meta: &ObjectMeta, kind: &K::DynamicType) -> Self {
        Self::Delete(Observed::new::<K>(meta, kind))
    }

    /// The kind of the object.
    pub fn kind(&self) -> &str {
        match self {
            Self::Apply(intent)
            | Self::AdoptFields(intent, _)
            | Self::Create(intent, _)
            | Self::Verify(intent, _) => intent.kind(),
            Self::Merge(object, _) | Self::Delete(object) => &object.resource.kind,
        }
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        match self {
            Self::Apply(intent)
            | Self::AdoptFields(intent, _)
            | Self::Create(intent, _)
            | Self::Verify(intent, _) => intent.name(),
            Self::Merge(object, _) | Self::Delete(object) => &object.name,
        }
    }

    /// Whether it restores a child whose intent has not changed: it is gone, or somebody has changed it.
    pub fn is_repair(&self) -> bool {
        matches!(self, Self::Create(..) | Self::Verify(..))
    }
}

/// What the [`Writer`](crate::Writer) has written in a pass, in order.
#[derive(Default)]
pub struct Written(Vec<Write>);

/// One write.
struct Write {
    kind: String,
    name: String,
    result: WriteResult,
}

enum WriteResult {
    /// The object, as the API server returned it.
    Applied(Box<DynamicObject>),
    /// The same; the child cache has its summary, and the object is not kept: a pass can write many.
    Cached,
    Deleted,
}

impl Written {
    pub(crate) fn applied(&mut self, kind: &ApiResource, name: &str, object: DynamicObject) {
        self.push(kind, name, WriteResult::Applied(Box::new(object)));
    }

    pub(crate) fn cached(&mut self, kind: &ApiResource, name: &str) {
        self.push(kind, name, WriteResult::Cached);
    }

    pub(crate) fn deleted(&mut self, object: &Observed) {
        self.push(&object.resource, &object.name, WriteResult::Deleted);
    }

    fn push(&mut self, kind: &ApiResource, name: &str, result: WriteResult) {
        self.0.push(Write {
            kind: kind.kind.clone(),
            name: name.to_owned(),
            result,
        });
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Write> {
        self.0.iter().filter(move |write| write.kind == kind)
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the objects of a kind that were applied or merged.
    pub fn names(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.of_kind(kind)
            .filter(|write| !matches!(write.result, WriteResult::Deleted))
            .map(|write| write.name.as_str())
    }

    /// The objects of a kind that were applied or merged, as the API server returned them. Objects of cached kinds are not
    /// kept.
    pub fn objects(&self, kind: &str) -> impl Iterator<Item = &DynamicObject> {
        self.of_kind(kind).filter_map(|write| match &write.result {
            WriteResult::Applied(object) => Some(object.as_ref()),
            WriteResult::Cached | WriteResult::Deleted => None,
        })
    }

    /// The last state of an object that was applied or merged.
    pub fn object(&self, kind: &str, name: &str) -> Option<&DynamicObject> {
        let named = |object: &&DynamicObject| object.metadata.name.as_deref() == Some(name);
        self.objects(kind).filter(named).last()
    }

    /// The same, for a kind with a type.
    pub fn get<K>(&self, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
    {
        self.object(&K::kind(&()), name)?.clone().try_parse().ok()
    }

    /// The names of the objects of a kind that were deleted.
    pub fn deletions(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.of_kind(kind)
            .filter(|write| matches!(write.result, WriteResult::Deleted))
            .map(|write| write.name.as_str())
    }
}

/// Without the objects: a Secret may be among them.
impl fmt::Debug for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |write: &Write| {
            let verb = match write.result {
                WriteResult::Applied(_) | WriteResult::Cached => "applied",
                WriteResult::Deleted => "deleted",
            };
            format!("{verb} {} {}", write.kind, write.name)
        };
        formatter.debug_list().entries(self.0.iter().map(shown)).finish()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_found_by_kind_and_name() {
        let secret = |value: &str| -> DynamicObject {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "password": value },
            });
            serde_json::from_value(secret).unwrap()
        };
        let observed = |name: &str| {
            let meta = ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            };
            Observed::new::<Secret>(&meta, &())
        };
        let mut written = Written::default();
        assert!(written.is_empty());
        let secrets = ApiResource::erase::<Secret>(&());
        written.applied(&secrets, "a", secret("b25l"));
        written.applied(&secrets, "a", secret("dHdv"));
        written.cached(&ApiResource::erase::<ConfigMap>(&()), "c");
        written.deleted(&observed("b"));
        assert_eq!(written.names("Secret").collect::<Vec<_>>(), ["a", "a"]);
        assert_eq!(written.names("ConfigMap").collect::<Vec<_>>(), ["c"]);
        assert_eq!(written.deletions("Secret").collect::<Vec<_>>(), ["b"]);
        let last: Secret = written.get("a").unwrap();
        assert_eq!(last.data.unwrap()["password"].0, b"two");
        assert!(written.get::<Secret>("b").is_none() && written.get::<ConfigMap>("a").is_none());
        assert_eq!(
            format!("{written:?}"),
            r#"["applied Secret a", "applied Secret a", "applied ConfigMap c", "deleted Secret b"]"#
        );
    }
}
