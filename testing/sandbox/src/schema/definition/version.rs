//! Validation of one version: its columns, its scale subresource, its schema.

use serde_json::{Value, json};

use super::expressions::{self, Place};
use super::openapi;
use crate::error::FieldError;
use crate::schema::{Schema, validate};
use crate::store::text;

/// The formats of a column.
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

pub(super) fn check(version: &Value, index: usize, place: &str, errors: &mut Vec<FieldError>) {
    columns(version, place, errors);
    scale(version, place, errors);
    let warning = version
        .get("deprecationWarning")
        .filter(|warning| !warning.is_null());
    if let Some(warning) = warning.filter(|_| version.get("deprecated") != Some(&json!(true))) {
        let field = format!("spec.versions[{index}].deprecationWarning");
        let detail = "can only be set for deprecated versions";
        errors.push(FieldError::invalid(field, warning, detail));
    }
    let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
        let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
        errors.push(FieldError::required(at, ""));
        return;
    };
    let at = if place == "spec" {
        "spec.validation.openAPIV3Schema".to_owned()
    } else {
        format!("{place}.schema.openAPIV3Schema")
    };
    let before = errors.len();
    openapi::check(schema, &at, errors);
    // The original checks the structure only of an otherwise valid schema.
    if errors.len() == before {
        structural(schema, Place::root(&at), errors);
    }
}

fn columns(version: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for (index, column) in columns.into_iter().flatten().enumerate() {
        let at = format!("{place}.additionalPrinterColumns[{index}]");
        let kind = text(column, "/type");
        if !matches!(kind, "boolean" | "date" | "integer" | "number" | "string") {
            let detail = "must be one of boolean,date,integer,number,string";
            errors.push(FieldError::invalid(format!("{at}.type"), &json!(kind), detail));
        }
        let format = text(column, "/format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(
                format!("{at}.format"),
                &json!(format),
                detail,
            ));
        }
        if text(column, "/jsonPath").is_empty() {
            errors.push(FieldError::required(format!("{at}.JSONPath"), ""));
        }
    }
}

fn scale(version: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = version.pointer("/subresources/scale") else {
        return;
    };
    for (key, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let path = text(scale, &format!("/{key}"));
        let detail = if !path.starts_with('.') {
            "must be a simple json path starting with .".to_owned()
        } else if !path.starts_with(&format!("{root}.")) {
            format!("should be a json path under {root}")
        } else {
            continue;
        };
        let at = format!("{place}.subresources.scale.{key}");
        errors.push(FieldError::invalid(at, &json!(path), detail));
    }
    let selector = text(scale, "/labelSelectorPath");
    let is_inside = selector.starts_with(".spec.") || selector.starts_with(".status.");
    if !selector.is_empty() && !is_inside {
        let at = format!("{place}.subresources.scale.labelSelectorPath");
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(at, &json!(selector), detail));
    }
}

/// Every node of a structural schema has a type, and its keywords fit together.
fn structural(schema: &Value, place: Place<'_>, errors: &mut Vec<FieldError>) {
    let (path, root) = (place.path, place.is_root);
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
    let kind = text(schema, "/type");
    let untyped = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if kind.is_empty() && (!untyped || root) {
        let detail = if root {
            "must not be empty at the root"
        } else {
            "must not be empty for specified object fields"
        };
        errors.push(FieldError::required(format!("{path}.type"), detail));
    }
    if root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(
            format!("{path}.type"),
            &json!(kind),
            "must be object at the root",
        ));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(
            at,
            &json!(false),
            "must be true or undefined",
        ));
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    if text(schema, "/x-kubernetes-list-type") == "map" && keys.is_none_or(Vec::is_empty) {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(
            format!("{path}.x-kubernetes-list-map-keys"),
            detail,
        ));
    }
    embedded(schema, path, errors);
    expressions::check(schema, place, errors);
    default(schema, path, errors);
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            // This is the only way to express an integer or a string.
            let is_either = flag("x-kubernetes-int-or-string") && key != "oneOf";
            condition(part, &format!("{path}.{key}[{index}]"), is_either, errors);
        }
    }
    if let Some(part) = schema.get("not") {
        condition(part, &format!("{path}.not"), false, errors);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, child) in properties.into_iter().flatten() {
        if root && name == "metadata" {
            metadata(child, &format!("{path}.properties[metadata]"), errors);
            continue;
        }
        let at = format!("{path}.properties[{name}]");
        let kind = text(child, "/type");
        if root && matches!(name.as_str(), "kind" | "apiVersion") && kind != "string" {
            errors.push(FieldError::invalid(
                format!("{at}.type"),
                &json!(kind),
                "must be string",
            ));
        }
        structural(child, place.inside(&at), errors);
    }
    if let Some(items) = schema.get("items") {
        let at = format!("{path}.items");
        let is_map = text(schema, "/x-kubernetes-list-type") == "map";
        structural(items, place.item(&at, is_map), errors);
    } else if kind == "array" {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        if properties.is_some() {
            errors.push(FieldError::forbidden(
                format!("{path}.additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        structural(
            values,
            place.inside(&format!("{path}.additionalProperties")),
            errors,
        );
    }
}

/// A default must fit its own schema.
fn default(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default") {
        let at = format!("{path}.default");
        let wrong = validate::check(Schema::custom(schema), default, "").into_iter();
        errors.extend(wrong.map(|error| FieldError {
            field: if error.field.is_empty() {
                at.clone()
            } else {
                format!("{at}.{}", error.field)
            },
            ..error
        }));
    }
}

/// An embedded resource is an object with known or unknown fields.
fn embedded(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let flag = |key: &str| schema.get(key) == Some(&json!(true));
    if !flag("x-kubernetes-embedded-resource") {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_none_or(serde_json::Map::is_empty) && !flag("x-kubernetes-preserve-unknown-fields") {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
    let kind = text(schema, "/type");
    if kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(FieldError::invalid(format!("{path}.type"), &json!(kind), detail));
    }
}

/// A schema may restrict only the name in the metadata.
fn metadata(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "/type");
    if kind != "object" {
        errors.push(FieldError::invalid(
            format!("{path}.type"),
            &json!(kind),
            "must be object",
        ));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut others = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| !matches!(name.as_str(), "name" | "generateName"));
    if others.next().is_some() {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// A value validation must not declare a type.
fn condition(part: &Value, path: &str, typed: bool, errors: &mut Vec<FieldError>) {
    if part.get("type").is_some() && !typed {
        errors.push(FieldError::forbidden(
            format!("{path}.type"),
            "must be empty to be structural",
        ));
    }
    if part.get("description").is_some() {
        let detail = "must be empty to be structural";
        errors.push(FieldError::forbidden(format!("{path}.description"), detail));
    }
    if part.get("default").is_some() {
        let detail = "must be undefined to be structural";
        errors.push(FieldError::forbidden(format!("{path}.default"), detail));
    }
    let properties = part.get("properties").and_then(Value::as_object);
    for (name, child) in properties.into_iter().flatten() {
        condition(child, &format!("{path}.properties[{name}]"), false, errors);
    }
    if let Some(items) = part.get("items") {
        condition(items, &format!("{path}.items"), false, errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in part
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            condition(part, &format!("{path}.{key}[{index}]"), typed, errors);
        }
    }
}
