//! Validates a custom resource with its `OpenAPI` schema, with the original's messages.

mod combinations;
mod values;

use serde_json::{Value, json};

use self::combinations::combinations;
use self::values::{bounds, enumeration, limits, string};
use super::Schema;
use super::prune::join;
use crate::error::{Fault, FieldError};

/// All validation errors of the value.
pub(crate) fn check(schema: Schema<'_>, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, path, &mut errors);
    errors
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn fits(schema: Schema<'_>, value: &Value) -> bool {
    if schema.is_int_or_string() {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match (schema.json_type(), type_of(value)) {
        (_, "null") => schema.nullable() || schema.json_type().is_empty(),
        ("", _) | ("number", "integer") => true,
        ("integer", "number") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        (wanted, found) => wanted == found,
    }
}

/// An error that the original reports without a field.
fn loose(detail: String) -> FieldError {
    FieldError::new(Fault::Invalid, "<nil>", Some(json!("")), detail)
}

/// Numbers that are not integers, or are too large, have their own error message.
fn check_integer(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    if schema.json_type() != "integer" || !value.is_number() {
        return true;
    }
    let format = schema.format();
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let small = value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    if whole && (format != "int32" || small) {
        return true;
    }
    let kind = match format {
        "" => "(default format)".to_owned(),
        format => format!("with format {format}"),
    };
    errors.push(loose(format!(
        "Checked value must be of type integer {kind} in {path}"
    )));
    if !whole {
        let (wanted, found) = match format {
            "" => ("integer", "number"),
            format => (format, "float64"),
        };
        let detail = format!("{path} in body must be of type {wanted}: \"{found}\"");
        errors.push(FieldError::new(
            Fault::TypeInvalid,
            path,
            Some(json!(found)),
            detail,
        ));
        bounds(
            schema.node(),
            value.as_f64().unwrap_or_default(),
            value,
            path,
            errors,
        );
    }
    false
}

fn walk(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !check_integer(schema, value, path, errors) {
        return;
    }
    if !fits(schema, value) {
        let (wanted, found) = (
            if schema.is_int_or_string() {
                "integer,string"
            } else {
                schema.json_type()
            },
            type_of(value),
        );
        let shown = Some(json!(found));
        let detail = format!("{path} in body must be of type {wanted}: \"{found}\"");
        errors.push(FieldError::new(Fault::TypeInvalid, path, shown, detail));
        return;
    }
    if value.is_null() {
        return;
    }
    let node = schema.node();
    combinations(schema, value, path, errors);
    enumeration(node, value, path, errors);
    match value {
        Value::String(text) => string(schema, text, path, errors),
        Value::Number(number) => bounds(node, number.as_f64().unwrap_or_default(), value, path, errors),
        Value::Array(items) => {
            limits(node, ["minItems", "maxItems"], items.len(), "items", path, errors);
            if let Some(element) = schema.items() {
                for (index, item) in items.iter().enumerate() {
                    walk(element, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Object(map) => {
            limits(
                node,
                ["minProperties", "maxProperties"],
                map.len(),
                "properties",
                path,
                errors,
            );
            let embedded = if schema.is_embedded_resource() {
                &["apiVersion", "kind"][..]
            } else {
                &[]
            };
            for field in schema
                .required()
                .chain(embedded.iter().copied())
                .filter(|field| !map.contains_key(*field))
            {
                errors.push(FieldError::required(join(path, field), ""));
            }
            for (key, child) in map {
                if let Some(field) = schema.child(key) {
                    walk(field, child, &join(path, key), errors);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(schema: &Value, value: &Value) -> Vec<String> {
        check(Schema::custom(schema), value, "spec")
            .iter()
            .map(FieldError::to_string)
            .collect()
    }

    #[test]
    fn rules_are_checked_in_the_words_of_the_original() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "n": {"type": "integer", "minimum": 1, "maximum": 5},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        }});
        assert!(errors(&schema, &json!({"name": "abc", "mode": "a", "n": 5, "port": "x"})).is_empty());
        assert_eq!(errors(&schema, &json!({})), ["spec.name: Required value"]);
        assert_eq!(
            errors(&schema, &json!({"name": 1})),
            [r#"spec.name: Invalid value: "integer": spec.name in body must be of type string: "integer""#]
        );
        assert_eq!(
            errors(&schema, &json!({"name": "a", "mode": "c", "n": 0})),
            [
                r#"spec.mode: Unsupported value: "c": supported values: "a", "b""#,
                "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1",
            ]
        );
    }
}
