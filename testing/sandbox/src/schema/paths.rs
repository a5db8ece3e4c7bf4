//! Paths of fields in error messages.

use serde_json::Value;

use super::Schema;
use crate::error::{Fault, FieldError};

/// A path in the original's format: fields after dots, keys of maps in brackets.
pub(super) fn shown_path(root: Schema<'_>, path: &str) -> String {
    let mut shown = String::new();
    let mut here = Some(root);
    for part in path.split('.') {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        let declared = here.and_then(|schema| schema.field(name));
        match (declared, here.and_then(Schema::values)) {
            (None, Some(_)) => shown.extend(["[", name, "]"]),
            _ if shown.is_empty() => shown.push_str(name),
            _ => shown.extend([".", name]),
        }
        shown.push_str(indices);
        here = here.and_then(|schema| schema.child(name));
        for _ in indices.matches('[') {
            here = here.and_then(Schema::items);
        }
    }
    shown
}

/// Whether the value of an error is unchanged. For a missing field this is the object that lacks it.
pub(super) fn is_unchanged(error: &FieldError, old: &Value, new: &Value) -> bool {
    let path = match error.fault {
        Fault::Required => error.field.rsplit_once('.').map_or("", |(parent, _)| parent),
        _ => error.field.trim_start_matches("<nil>"),
    };
    at(old, path) == at(new, path)
}

/// The value at a path such as `spec.list[0].name`.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let mut here = value;
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        let next = match here {
            Value::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            other => other.get(part),
        };
        here = next.unwrap_or(&Value::Null);
    }
    here
}
