//! Duplicates in lists of type set or map.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::prune::join;
use super::{ListType, Schema};
use crate::error::{Fault, FieldError};

/// Duplicate items of lists that are a set or a map.
pub(crate) fn check(schema: Schema<'_>, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    duplicates(schema, value, path, &mut errors);
    errors
}

fn duplicates(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                if let Some(field) = schema.child(key) {
                    duplicates(field, child, &join(path, key), errors);
                }
            }
        }
        Value::Array(items) => {
            let kind = schema.list_type();
            let mut seen = HashSet::new();
            for (index, item) in items.iter().enumerate() {
                let at = format!("{path}[{index}]");
                let identity = match &kind {
                    ListType::Atomic => None,
                    ListType::Set => Some(item.clone()),
                    ListType::Map(keys) => {
                        let mut identity: Map<String, Value> = keys
                            .iter()
                            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
                            .collect();
                        identity.sort_keys();
                        Some(Value::Object(identity))
                    }
                };
                if let Some(identity) = identity
                    && !seen.insert(identity.to_string())
                {
                    errors.push(FieldError::new(Fault::Duplicate, at.clone(), Some(identity), ""));
                }
                if let Some(element) = schema.items() {
                    duplicates(element, item, &at, errors);
                }
            }
        }
        _ => {}
    }
}
