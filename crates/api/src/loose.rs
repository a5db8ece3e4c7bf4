//! A field whose type is defined by Kubernetes itself.
//!
//! The schema of such a type is too large to include once for each component, so the CRD accepts any object in the
//! field. The Rust type accepts any object, too: a value that does not fit is kept, and validation reports it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A value of type `T`, or any other value.
#[derive(Clone, Debug, PartialEq)]
pub enum Loose<T> {
    /// The value has the type.
    Fits(T),
    /// The value does not have the type.
    Misfit {
        /// The value as it was given.
        value: Value,
        /// Why it does not have the type.
        error: String,
    },
}

impl<T> Loose<T> {
    /// The value, if it has the type.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Fits(value) => Some(value),
            Self::Misfit { .. } => None,
        }
    }

    /// Why the value does not have the type.
    pub fn misfit(&self) -> Option<&str> {
        match self {
            Self::Fits(_) => None,
            Self::Misfit { error, .. } => Some(error),
        }
    }
}

impl<T> From<T> for Loose<T> {
    fn from(value: T) -> Self {
        Self::Fits(value)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(match T::deserialize(&value) {
            Ok(fits) => Self::Fits(fits),
            Err(error) => Self::Misfit {
                error: error.to_string(),
                value,
            },
        })
    }
}

impl<T: Serialize> Serialize for Loose<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fits(value) => value.serialize(serializer),
            Self::Misfit { value, .. } => value.serialize(serializer),
        }
    }
}

/// The schema accepts any object.
impl<T> JsonSchema for Loose<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Loose".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}
