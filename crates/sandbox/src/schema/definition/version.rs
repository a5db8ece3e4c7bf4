//! What is wrong with one version: its columns, its scale, its schema.

use kube_cel::compile_schema;
use serde_json::{Value, json};

use crate::error::FieldError;
use crate::schema::{Schema, validate};
use crate::store::text;

pub(super) fn check(version: &Value, index: usize, place: &str, errors: &mut Vec<FieldError>) {
    columns(version, place, errors);
    scale(version, place, errors);
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
    structural(schema, &at, true, errors);
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
}

/// Rules must be there and must be readable; whether their fields exist is not checked.
fn expressions(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}].rule");
        if text(rule, "/rule").trim().is_empty() {
            errors.push(FieldError::required(at, "rule is not specified"));
            continue;
        }
        let alone = json!({"type": schema.get("type"), "x-kubernetes-validations": [rule]});
        for error in compile_schema(&alone).compilation_errors() {
            let detail = format!("compilation failed: {error}");
            errors.push(FieldError::invalid(at.clone(), &rule["rule"], detail));
        }
    }
}

/// Every node of a structural schema has a type, and its parts go together.
fn structural(schema: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
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
    expressions(schema, path, errors);
    if let Some(default) = schema.get("default") {
        let at = format!("{path}.default");
        let wrong = validate::check(Schema::custom(schema), default, "").into_iter();
        errors.extend(wrong.map(|error| FieldError {
            field: at.clone(),
            ..error
        }));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, child) in properties.into_iter().flatten() {
        structural(child, &format!("{path}.properties[{name}]"), false, errors);
    }
    if let Some(items) = schema.get("items") {
        structural(items, &format!("{path}.items"), false, errors);
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
        structural(values, &format!("{path}.additionalProperties"), false, errors);
    }
}
