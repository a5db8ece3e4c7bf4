//! Reads an object as far as possible.
//!
//! The schema and the types accept the same, and still a type may not accept an object: an older schema accepted it, or
//! a newer version of the operator wrote it. Such an object must get a condition that names the field, and it must be
//! deletable. So the malformed fields are [removed](salvage()) one by one, and the rest is an object like any other.

mod path;
mod salvage;

use std::borrow::Cow;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use self::salvage::{Flaw, salvage};
use crate::problem::{Problem, guarded};
use crate::text::shorten;

/// The reason of a problem with an object that cannot be read.
pub const MALFORMED: &str = "Malformed";
/// A condition's message is for people; the API server accepts up to 32 KiB.
const MESSAGE: usize = 2048;

/// The problem of an object that reads another one, named here, with these malformed fields. It contains no value of the
/// other: not everybody who can read the status may read that object.
pub(crate) fn unreadable<'a>(
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    flaws: impl IntoIterator<Item = &'a Flaw>,
) -> Problem {
    let paths: Vec<&str> = flaws.into_iter().map(|flaw| flaw.path.as_str()).collect();
    let home = namespace
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    let message = format!(
        "{kind} {home}{name} cannot be read: the operator does not accept its {}; correct the field there",
        paths.join(", ")
    );
    Problem::dependency(MALFORMED, shorten(&message, MESSAGE))
}

/// An object with possibly malformed fields.
#[derive(Clone, Debug)]
pub struct Lenient<O> {
    /// The object without its malformed fields. `None` if nothing could be read.
    object: Option<O>,
    /// Only set when there is no object.
    metadata: ObjectMeta,
    flaws: Vec<Flaw>,
}

impl<O> Lenient<O> {
    /// An object without malformed fields.
    pub fn whole(object: O) -> Self {
        Self {
            object: Some(object),
            metadata: ObjectMeta::default(),
            flaws: Vec::new(),
        }
    }

    /// The object, as far as it can be read.
    pub fn object(&self) -> Option<&O> {
        self.object.as_ref()
    }

    /// The object, if all fields could be read.
    pub fn into_whole(self) -> Option<O> {
        self.object.filter(|_| self.flaws.is_empty())
    }

    /// The object, as far as it can be read.
    pub fn into_object(self) -> Option<O> {
        self.object
    }

    /// The malformed fields.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }
}

impl<O: Resource<DynamicType = ()>> Lenient<O> {
    /// The object as another one needs it: without its malformed fields, unless one of them is needed.
    pub fn needed(self, is_needed: impl Fn(&Flaw) -> bool) -> Result<O, Problem> {
        let missing: Vec<&Flaw> = self
            .flaws
            .iter()
            .filter(|flaw| self.object.is_none() || is_needed(flaw))
            .collect();
        let meta = self.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        let problem = unreadable(
            &O::kind(&()),
            meta.namespace.as_deref(),
            name,
            missing.iter().copied(),
        );
        let is_readable = missing.is_empty();
        self.object.filter(|_| is_readable).ok_or(problem)
    }
}

impl<'de, O: DeserializeOwned> Deserialize<'de> for Lenient<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        // A panic here would end the watch of all objects.
        let step = "reading an object";
        if let Some(Ok(object)) = guarded(step, || O::deserialize(&value)) {
            return Ok(Self::whole(object));
        }
        let metadata = value.get("metadata").cloned().unwrap_or_default();
        let (object, flaws) =
            guarded(step, || salvage(value)).unwrap_or_else(|| (None, vec![Flaw::panicked()]));
        let metadata = if object.is_some() {
            ObjectMeta::default()
        } else {
            serde_json::from_value(metadata).map_err(D::Error::custom)?
        };
        Ok(Self {
            object,
            metadata,
            flaws,
        })
    }
}

impl<O: Resource> Resource for Lenient<O> {
    type DynamicType = O::DynamicType;
    type Scope = O::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        O::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        O::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        O::version(dt)
    }

    fn api_version(dt: &Self::DynamicType) -> Cow<'_, str> {
        O::api_version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        O::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.as_ref().map_or(&self.metadata, O::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.as_mut().map_or(&mut self.metadata, O::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug)]
    struct Bomb;

    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("boom")
        }
    }

    /// Not everybody who reads the status of an object may read the other one.
    #[test]
    fn another_object_is_named_with_its_fields_and_without_their_values() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one", "namespace": "shop" },
            "immutable": "hidden", "data": { "kept": "yes" },
        });
        let read: Lenient<ConfigMap> = serde_json::from_value(object).unwrap();
        let problem = read.clone().needed(|flaw| flaw.is_in("immutable")).unwrap_err();
        assert_eq!(problem.reason, MALFORMED);
        assert!(problem.message.contains("ConfigMap shop/one"), "{problem:?}");
        assert!(problem.message.contains("its immutable;"), "{problem:?}");
        assert!(!problem.message.contains("hidden"), "{problem:?}");
        let rest = read.needed(|flaw| flaw.is_in("data")).unwrap();
        assert_eq!(rest.data.unwrap()["kept"], "yes");
    }

    #[test]
    fn a_panic_is_the_flaw_of_its_object() {
        let object = json!({ "metadata": { "name": "one" }, "spec": {} });
        let read: Lenient<Bomb> = serde_json::from_value(object).unwrap();
        assert_eq!(read.metadata.name.as_deref(), Some("one"));
        assert_eq!(read.flaws().len(), 1);
        assert!(read.into_object().is_none());
    }
}
