//! Removes fields that a schema does not declare, and nulls that it does not allow.

use serde_json::Value;

use super::{Schema, Shape};

const EMBEDDED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes undeclared fields and returns their paths.
pub(crate) fn unknown_fields(schema: Schema<'_>, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(schema, value, "", &mut unknown);
    unknown
}

fn walk(schema: Schema<'_>, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map)
            if schema.shape() == Shape::Object || schema.is_embedded_resource() || schema.says_nothing() =>
        {
            map.retain(|key, child| {
                let at = join(path, key);
                match schema.child(key) {
                    _ if schema.is_embedded_resource() && key == "metadata" => {
                        embedded_metadata(child, &at, unknown);
                        true
                    }
                    Some(field) => {
                        walk(field, child, &at, unknown);
                        true
                    }
                    None if schema.keeps_unknown() => true,
                    None if schema.is_embedded_resource() && EMBEDDED.contains(&key.as_str()) => true,
                    None => {
                        unknown.push(at);
                        false
                    }
                }
            });
        }
        // An object instead of a scalar has no declared fields.
        Value::Object(map) if schema.shape() == Shape::Scalar && !schema.is_builtin() => {
            unknown.extend(map.keys().map(|key| join(path, key)));
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for (index, item) in items.iter_mut().enumerate() {
                    walk(schema, item, &format!("{path}[{index}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

/// The metadata of an embedded resource has the usual schema.
fn embedded_metadata(metadata: &mut Value, path: &str, unknown: &mut Vec<String>) {
    if let Some(schema) = Schema::object_meta() {
        walk(schema, metadata, path, unknown);
    }
    if let Some(map) = metadata.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
}

/// Removes nulls that the schema does not allow; a default may replace them.
pub(crate) fn nulls(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(map) if schema.shape() == Shape::Object => map.retain(|key, child| {
            let Some(field) = schema.child(key) else {
                return true;
            };
            nulls(field, child);
            !child.is_null() || field.nullable() || field.shape() == Shape::Any
        }),
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for item in items {
                    nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// The path of a field below another path, in the format of error messages.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_undeclared_fields_go() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        }});
        let mut value = json!({"a": null, "b": 1, "map": {"m": {"x": 1, "y": 2}}, "open": {"any": {"thing": 1}},
            "list": [{"k": "v", "z": 0}]});
        let unknown = unknown_fields(Schema::custom(&schema), &mut value);
        assert_eq!(unknown, ["b", "map.m.y", "list[0].z"]);
        nulls(Schema::custom(&schema), &mut value);
        assert_eq!(
            value,
            json!({"map": {"m": {"x": 1}}, "open": {"any": {"thing": 1}}, "list": [{"k": "v"}]})
        );
    }
}
