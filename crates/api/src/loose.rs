//! A part of a manifest that is a type of Kubernetes itself.
//!
//! The schema of such a type is too large to stand in a definition once for each component, so the definition accepts
//! any object there. The type accepts the same: what does not fit is kept as it is, and validation names it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A value of a type, or whatever stands in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Loose<T> {
    /// It is of the type.
    Fits(T),
    /// It is something else.
    Misfit {
        /// What it is.
        value: Value,
        /// Why it is not of the type.
        error: String,
    },
}

impl<T> Loose<T> {
    /// The value, if it is of the type.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Fits(value) => Some(value),
            Self::Misfit { .. } => None,
        }
    }

    /// Why it is not of the type.
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

/// Any object.
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
