//! Validation of one version: its columns, its scale subresource, its schema.

use std::sync::LazyLock;

use kube_cel::compile_schema;
use regex::Regex;
use serde_json::{Value, json};

use super::openapi;
use crate::error::{Fault, FieldError};
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
    let before = errors.len();
    openapi::check(schema, &at, errors);
    // The original checks the structure only of an otherwise valid schema.
    if errors.len() == before {
        structural(schema, &at, true, errors);
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

/// Rules must exist and must parse. The type check covers only the fields of `self`.
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
        if let Some(field) = unknown_field(schema, text(rule, "/rule")) {
            let detail = format!("compilation failed: ERROR: <input>: undefined field '{field}'");
            errors.push(FieldError::invalid(at.clone(), &rule["rule"], detail));
        }
        words(
            schema,
            rule,
            &format!("{path}.x-kubernetes-validations[{index}]"),
            errors,
        );
    }
}

/// The message, the reason and the field path of a rule.
fn words(schema: &Value, rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    const REASONS: [&str; 4] = [
        "FieldValueDuplicate",
        "FieldValueForbidden",
        "FieldValueInvalid",
        "FieldValueRequired",
    ];
    let reason = text(rule, "/reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        let known: Vec<String> = REASONS.iter().map(|known| format!("\"{known}\"")).collect();
        let detail = format!("supported values: {}", known.join(", "));
        errors.push(FieldError::new(
            Fault::NotSupported,
            format!("{at}.reason"),
            Some(json!(reason)),
            detail,
        ));
    }
    let message = text(rule, "/message");
    if message.contains(['\n', '\r']) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(
            format!("{at}.message"),
            &json!(message),
            detail,
        ));
    }
    let path = text(rule, "/fieldPath");
    let first = path
        .strip_prefix('.')
        .and_then(|path| path.split(['.', '[']).next());
    let known = |name: &str| {
        schema
            .pointer("/properties")
            .is_some_and(|all| all.get(name).is_some())
    };
    if !path.is_empty() && !path.starts_with('[') && !first.is_some_and(known) {
        let detail = "must be a valid path";
        errors.push(FieldError::invalid(
            format!("{at}.fieldPath"),
            &json!(path),
            detail,
        ));
    }
}

/// The first field of `self` in a rule that the schema does not have, if the schema lists all fields.
fn unknown_field(schema: &Value, rule: &str) -> Option<String> {
    static LITERALS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"#).ok());
    static FIELDS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(?:self|oldSelf)\.([A-Za-z][A-Za-z0-9_]*)\s*(\()?").ok());
    let properties = schema.get("properties")?.as_object()?;
    let open = [
        "additionalProperties",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ];
    if open.iter().any(|key| schema.get(*key).is_some()) {
        return None;
    }
    let rule = LITERALS.as_ref()?.replace_all(rule, "''");
    let names = FIELDS.as_ref()?.captures_iter(&rule);
    // A name with a call is a function; escaped names are not checked.
    let mut names = names.filter(|found| found.get(2).is_none());
    names.find_map(|found| {
        let name = found.get(1)?.as_str();
        let known = properties.contains_key(name) || name.contains("__");
        let root = matches!(name, "apiVersion" | "kind" | "metadata");
        (!known && !root).then(|| name.to_owned())
    })
}

/// Every node of a structural schema has a type, and its keywords fit together.
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
            field: if error.field.is_empty() {
                at.clone()
            } else {
                format!("{at}.{}", error.field)
            },
            ..error
        }));
    }
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
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, child) in properties.into_iter().flatten() {
        if root && name == "metadata" {
            metadata(child, &format!("{path}.properties[metadata]"), errors);
            continue;
        }
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

/// A schema may restrict only the name in the metadata.
fn metadata(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
