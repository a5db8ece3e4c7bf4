//! Checking a custom resource against its `OpenAPI` schema, in the words of the original.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Value, json};

use super::prune::join;
use super::{Schema, formats};
use crate::error::{Fault, FieldError};

/// All rules that the value breaks.
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

/// An error that the original does not tie to a field.
fn loose(detail: String) -> FieldError {
    FieldError::new(Fault::Invalid, "<nil>", Some(json!("")), detail)
}

/// Numbers that are no integers, or too large ones, are complained about in a way of their own.
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

fn enumeration(node: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(allowed) = node.get("enum").and_then(Value::as_array) else {
        return;
    };
    if allowed.contains(value) {
        return;
    }
    let list: Vec<String> = allowed
        .iter()
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| format!("\"{value}\""), |text| format!("\"{text}\""))
        })
        .collect();
    let detail = format!("supported values: {}", list.join(", "));
    errors.push(FieldError::new(
        Fault::NotSupported,
        path,
        Some(value.clone()),
        detail,
    ));
}

fn string(schema: Schema<'_>, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    let number = |key: &str| node.get(key).and_then(Value::as_u64);
    let shown = json!(text);
    let length = text.chars().count() as u64;
    if let Some(max) = number("maxLength").filter(|max| length > *max) {
        let detail = format!("may not be more than {max} bytes");
        errors.push(FieldError::new(Fault::TooLong, path, None, detail));
    }
    if let Some(min) = number("minLength").filter(|min| length < *min) {
        let detail = format!("{path} in body should be at least {min} chars long");
        errors.push(FieldError::invalid(path, &shown, detail));
    }
    if let Some(pattern) = node.get("pattern").and_then(Value::as_str)
        && compiled(pattern).is_some_and(|regex| !regex.is_match(text))
    {
        errors.push(FieldError::invalid(
            path,
            &shown,
            format!("{path} in body should match '{pattern}'"),
        ));
    }
    let format = schema.format();
    if !schema.is_int_or_string() && !formats::holds(format, text) {
        let detail = format!("{path} in body must be of type {format}: \"{text}\"");
        errors.push(FieldError::new(Fault::TypeInvalid, path, Some(shown), detail));
    }
}

/// Patterns are compiled once: that takes longer than all other checks of an object together.
fn compiled(pattern: &str) -> Option<Regex> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(pattern) {
        Some(regex) => regex.clone(),
        None => known
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).ok())
            .clone(),
    }
}

fn bounds(node: &Value, number: f64, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limit = |key: &str| node.get(key).and_then(Value::as_f64);
    let exclusive = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or_default();
    let mut broken = |detail: String| {
        errors.push(FieldError::invalid(
            path,
            value,
            format!("{path} in body should be {detail}"),
        ));
    };
    if let Some(min) = limit("minimum") {
        match exclusive("exclusiveMinimum") {
            true if number <= min => broken(format!("greater than {min}")),
            false if number < min => broken(format!("greater than or equal to {min}")),
            _ => {}
        }
    }
    if let Some(max) = limit("maximum") {
        match exclusive("exclusiveMaximum") {
            true if number >= max => broken(format!("less than {max}")),
            false if number > max => broken(format!("less than or equal to {max}")),
            _ => {}
        }
    }
    if let Some(step) = limit("multipleOf").filter(|step| *step != 0.0 && (number / step).fract() != 0.0) {
        broken(format!("a multiple of {step}"));
    }
}

fn limits(
    node: &Value,
    [min, max]: [&str; 2],
    count: usize,
    what: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let number = |key: &str| node.get(key).and_then(Value::as_u64);
    let count = count as u64;
    if let Some(max) = number(max).filter(|max| count > *max) {
        let detail = format!("must have at most {max} item{}", if max == 1 { "" } else { "s" });
        errors.push(FieldError::new(Fault::TooMany, path, Some(json!(count)), detail));
    }
    if let Some(min) = number(min).filter(|min| count < *min) {
        let detail = format!("{path} in body should have at least {min} {what}");
        errors.push(FieldError::invalid(path, &json!(count), detail));
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not`: in a structural schema they hold value validations only.
fn combinations(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    let failures = |branch: &Value| {
        let mut found = Vec::new();
        walk(Schema::custom(branch), value, path, &mut found);
        found
    };
    let results = |key: &str| -> Vec<Vec<FieldError>> {
        let branches = node.get(key).and_then(Value::as_array).into_iter().flatten();
        branches.map(failures).collect()
    };
    let passing = |results: &[Vec<FieldError>]| results.iter().filter(|found| found.is_empty()).count();
    // Of branches that all fail, the first of those that fail least is shown.
    let best = |results: Vec<Vec<FieldError>>| results.into_iter().min_by_key(Vec::len).unwrap_or_default();

    let all = results("allOf");
    if passing(&all) < all.len() {
        let how_many = if passing(&all) == 0 {
            ". None validated"
        } else {
            ""
        };
        errors.extend(all.into_iter().flatten());
        errors.push(loose(format!(
            "\"{path}\" must validate all the schemas (allOf){how_many}"
        )));
    }
    let any = results("anyOf");
    if !any.is_empty() && passing(&any) == 0 && !schema.is_int_or_string() {
        errors.extend(best(any));
        errors.push(loose(format!(
            "\"{path}\" must validate at least one schema (anyOf)"
        )));
    }
    let one = results("oneOf");
    let matching = passing(&one);
    if !one.is_empty() && matching != 1 {
        let count = if matching == 0 {
            errors.extend(best(one));
            "Found none valid".to_owned()
        } else {
            format!("Found {matching} valid alternatives")
        };
        errors.push(loose(format!(
            "\"{path}\" must validate one and only one schema (oneOf). {count}"
        )));
    }
    if node.get("not").is_some_and(|branch| failures(branch).is_empty()) {
        errors.push(loose(format!("\"{path}\" must not validate the schema (not)")));
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
