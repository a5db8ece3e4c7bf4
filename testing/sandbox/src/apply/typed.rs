//! Whether an applied configuration fits its schema, with the original's messages.

use serde_json::Value;

use super::walk::{elements, list_type};
use crate::schema::{ListType, Schema, Shape};

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The first field that does not fit its schema, with the original's message.
pub(crate) fn mismatch(schema: Schema<'_>, value: &Value, path: &str) -> Option<String> {
    let unexpected = |wanted: &str| {
        // The original prints its Go types.
        let shown = match value {
            Value::Array(items) => {
                format!("&{{[{}]}}", items.iter().map(plain).collect::<Vec<_>>().join(" "))
            }
            other => format!("&value.valueUnstructured{{Value:{}}}", plain(other)),
        };
        Some(format!("{path}: expected {wanted}, got {shown}"))
    };
    match (schema.shape(), value) {
        (Shape::Any, _) | (_, Value::Null) => None,
        (Shape::Object, Value::Object(map)) => map.iter().find_map(|(key, inner)| match schema.child(key) {
            Some(field) => mismatch(field, inner, &format!("{path}.{key}")),
            None if schema.keeps_unknown() => None,
            None => Some(format!("{path}.{key}: field not declared in schema")),
        }),
        (Shape::Object, _) => unexpected("map"),
        (Shape::List, Value::Array(list)) => {
            let element = schema.items()?;
            let identified = list_type(Some(schema)) != ListType::Atomic;
            let names = elements(Some(schema), Some(value));
            let twice = names
                .iter()
                .enumerate()
                .find(|(index, (name, _))| names.iter().take(*index).any(|(known, _)| known == name));
            if let Some((_, (name, _))) = twice.filter(|_| identified) {
                return Some(format!("{path}: duplicate entries for key {}", name.shown()));
            }
            list.iter().enumerate().find_map(|(index, item)| {
                let mut at = format!("{path}[{index}]");
                if let Some((name, _)) = names.get(index).filter(|_| identified) {
                    at = format!("{path}{}", name.shown());
                }
                mismatch(element, item, &at)
            })
        }
        (Shape::List, _) => unexpected("list"),
        (Shape::Scalar, _) if schema.is_int_or_string() || schema.node().get("oneOf").is_some() => None,
        (Shape::Scalar, _) => match (schema.json_type(), value) {
            ("string", Value::String(_))
            | ("integer" | "number", Value::Number(_))
            | ("boolean", Value::Bool(_)) => None,
            ("integer" | "number", _) => unexpected("numeric (int or float)"),
            (wanted, _) => unexpected(wanted),
        },
    }
}
