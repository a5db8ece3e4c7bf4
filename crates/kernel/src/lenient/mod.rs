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
use crate::problem::guarded;

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
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug)]
    struct Bomb;

    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("boom")
        }
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
