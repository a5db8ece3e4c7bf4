//! Objects in the form of JSON, field by field.

use serde_json::Value;

/// Sets a field of an object.
pub(crate) fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    object[field] = value.into();
}
