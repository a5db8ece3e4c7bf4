//! Keywords that a schema must not contain.

use regex::Regex;
use serde_json::{Value, json};

use crate::error::{Fault, FieldError};
use crate::store::text;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const LISTS: [&str; 3] = ["atomic", "set", "map"];
const MAPS: [&str; 2] = ["atomic", "granular"];
const UNSUPPORTED: [&str; 5] = ["$ref", "definitions", "dependencies", "id", "patternProperties"];

/// All errors of a schema and its subschemas.
pub(super) fn check(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    one_of(schema, path, "type", &TYPES, errors);
    one_of(schema, path, "x-kubernetes-list-type", &LISTS, errors);
    one_of(schema, path, "x-kubernetes-map-type", &MAPS, errors);
    for (key, wanted) in [
        ("x-kubernetes-list-type", "array"),
        ("x-kubernetes-map-type", "object"),
    ] {
        let kind = text(schema, "/type");
        let is_known =
            LISTS.contains(&text(schema, &format!("/{key}"))) || schema.get(key) == Some(&json!("granular"));
        if is_known && kind != wanted {
            let detail = format!("must be {wanted} if {key} is specified");
            errors.push(FieldError::invalid(format!("{path}.type"), &json!(kind), detail));
        }
    }
    for key in UNSUPPORTED.iter().filter(|key| schema.get(**key).is_some()) {
        let detail = format!("{key} is not supported");
        errors.push(FieldError::forbidden(format!("{path}.{key}"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), detail));
    }
    if schema.get("uniqueItems") == Some(&json!(true)) {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
    }
    let pattern = text(schema, "/pattern");
    if let Err(error) = Regex::new(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(
            format!("{path}.pattern"),
            &json!(pattern),
            detail,
        ));
    }
    lists(schema, path, errors);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, child) in properties.into_iter().flatten() {
        check(child, &format!("{path}.properties[{name}]"), errors);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(key).filter(|child| child.is_object()) {
            check(child, &format!("{path}.{key}"), errors);
        }
    }
}

fn one_of(schema: &Value, path: &str, key: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    let word = schema.get(key).and_then(Value::as_str).unwrap_or_default();
    if word.is_empty() || known.contains(&word) {
        return;
    }
    let known: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
    let detail = format!("supported values: {}", known.join(", "));
    let at = format!("{path}.{key}");
    errors.push(FieldError::new(
        Fault::NotSupported,
        at,
        Some(json!(word)),
        detail,
    ));
}

/// The items of a set are atomic, and the keys of a map are required.
fn lists(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let items = schema.get("items").unwrap_or(&Value::Null);
    match text(schema, "/x-kubernetes-list-type") {
        "set" if text(items, "/type") == "object" && text(items, "/x-kubernetes-map-type") != "atomic" => {
            let given = items.get("x-kubernetes-map-type").unwrap_or(&Value::Null);
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.push(FieldError::invalid(
                format!("{path}.items.x-kubernetes-map-type"),
                given,
                detail,
            ));
        }
        "map" => {
            let list = |value: &Value, key: &str| -> Vec<String> {
                let names = value.get(key).and_then(Value::as_array).into_iter().flatten();
                names
                    .filter_map(|name| name.as_str().map(str::to_owned))
                    .collect()
            };
            let required = list(items, "required");
            let keys = list(schema, "x-kubernetes-list-map-keys");
            let property = |key: &str| items.pointer(&format!("/properties/{key}"));
            let mut wrong = |detail: &str| {
                let at = format!("{path}.x-kubernetes-list-map-keys");
                errors.push(FieldError::invalid(at, &json!(keys), detail));
            };
            if keys.iter().any(|key| property(key).is_none()) {
                wrong("entries must all be names of item properties");
            }
            if keys
                .iter()
                .enumerate()
                .any(|(index, key)| keys.iter().take(index).any(|known| known == key))
            {
                wrong("must not contain duplicate entries");
            }
            for key in keys.iter().filter(|key| property(key).is_some()) {
                let kind = property(key)
                    .map(|property| text(property, "/type"))
                    .unwrap_or_default();
                if matches!(kind, "array" | "object") {
                    let at = format!("{path}.items.properties[{key}].type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(at, &json!(kind), detail));
                }
                let default = items.pointer(&format!("/properties/{key}/default"));
                if default.is_none() && !required.contains(key) {
                    let at = format!("{path}.items.properties[{key}].default");
                    let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    errors.push(FieldError::required(at, detail));
                }
            }
        }
        _ => {}
    }
}
