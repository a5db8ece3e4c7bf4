//! Patches: JSON patch and merge patch use a library, strategic merge is in its own file.

mod strategic;

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::schema::Schema;

/// The media types of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Kind {
    pub(crate) fn of(content_type: &str, custom: bool) -> Result<Self, ApiError> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        match media {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" => Err(ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(ApiError::unsupported_media_type("415: Unsupported Media Type")),
        }
    }
}

/// Applies a patch other than an apply.
pub(crate) fn apply(
    kind: Kind,
    schema: Option<Schema<'_>>,
    object: &Value,
    body: &[u8],
) -> Result<Value, ApiError> {
    let malformed =
        |error: &dyn std::fmt::Display| ApiError::bad_request(format!("error decoding patch: {error}"));
    let mut patched = object.clone();
    match kind {
        Kind::Json => {
            let steps: Vec<Map<String, Value>> =
                serde_json::from_slice(body).map_err(|error| malformed(&error))?;
            for step in steps {
                do_step(step, &mut patched).ok_or_else(|| {
                    ApiError::new(
                        422,
                        "Invalid",
                        "the server rejected our request due to an error in our request",
                    )
                })?;
            }
        }
        Kind::Merge => {
            let patch: Value = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
            if !patch.is_object() {
                return Err(malformed(&"not an object"));
            }
            json_patch::merge(&mut patched, &patch);
        }
        Kind::Strategic => {
            if body.is_empty() {
                return Err(ApiError::bad_request("unexpected end of JSON input"));
            }
            let patch: Value = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
            let Value::Object(patch) = patch else {
                return Err(malformed(&"not an object"));
            };
            let before = patched.as_object().cloned().unwrap_or_default();
            patched = Value::Object(strategic::merge(schema, before, &patch)?);
        }
        Kind::Apply => {}
    }
    Ok(patched)
}

/// Applies one operation. The original is more lenient than the standard: a missing value is null for a test and for a
/// copy, a replacement adds it, and an operation without a value uses null.
fn do_step(mut step: Map<String, Value>, object: &mut Value) -> Option<()> {
    let pointer = |step: &Map<String, Value>, key: &str| {
        let path = step.get(key)?.as_str()?;
        (path.is_empty() || path.starts_with('/')).then(|| path.to_owned())
    };
    let path = pointer(&step, "path")?;
    let absent = object.pointer(&path).is_none();
    match step.get("op")?.as_str()? {
        "test" if absent && step.get("value").is_none_or(Value::is_null) => return Some(()),
        "replace" if absent => {
            step.insert("op".to_owned(), json!("add"));
        }
        "copy" => {
            let from = pointer(&step, "from")?;
            let copied = object.pointer(&from).cloned().unwrap_or_default();
            step = Map::from_iter([
                ("op".to_owned(), json!("add")),
                ("path".to_owned(), json!(path)),
                ("value".to_owned(), copied),
            ]);
        }
        _ => {}
    }
    if matches!(step.get("op")?.as_str()?, "add" | "replace" | "test") {
        step.entry("value").or_insert(Value::Null);
    }
    let operation: json_patch::PatchOperation = serde_json::from_value(Value::Object(step)).ok()?;
    json_patch::patch(object, &[operation]).ok()
}
