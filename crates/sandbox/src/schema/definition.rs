//! What is wrong with a `CustomResourceDefinition`.

use kube_cel::compile_schema;
use serde_json::{Value, json};

use super::{Schema, validate};
use crate::error::{Fault, FieldError};
use crate::lifecycle;
use crate::store::text;

/// Refuses a definition that could not be served.
pub(crate) fn check(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let name = text(definition, "/metadata/name");
    if old.is_none() && name != format!("{}.{}", text(spec, "/names/plural"), text(spec, "/group")) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name), detail));
    }
    scope(spec, &mut errors);
    names(spec, &mut errors);
    if spec.get("preserveUnknownFields") == Some(&json!(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            &json!(true),
            detail,
        ));
    }
    conversion(spec, &mut errors);
    let versions = versions(spec);
    storage(definition, &versions, &mut errors);
    for (index, version) in versions.iter().enumerate() {
        let place = if versions.len() == 1 {
            "spec".to_owned()
        } else {
            format!("spec.versions[{index}]")
        };
        check_version(version, index, &place, &mut errors);
    }
    errors
}

fn versions(spec: &Value) -> Vec<Value> {
    let versions = spec.get("versions").and_then(Value::as_array);
    versions.cloned().unwrap_or_default()
}

fn scope(spec: &Value, errors: &mut Vec<FieldError>) {
    match text(spec, "/scope") {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(FieldError::required("spec.scope", "")),
        other => errors.push(FieldError::new(
            Fault::NotSupported,
            "spec.scope",
            Some(json!(other)),
            "supported values: \"Cluster\", \"Namespaced\"",
        )),
    }
}

fn names(spec: &Value, errors: &mut Vec<FieldError>) {
    const RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    for (key, mixed) in [
        ("plural", false),
        ("singular", false),
        ("kind", true),
        ("listKind", true),
    ] {
        let (field, name) = (format!("spec.names.{key}"), text(spec, &format!("/names/{key}")));
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let compared = if mixed {
            name.to_lowercase()
        } else {
            name.to_owned()
        };
        if !lifecycle::is_dns_1035_label(&compared) {
            let head = if mixed {
                "may have mixed case, but should otherwise match: "
            } else {
                ""
            };
            errors.push(FieldError::invalid(field, &json!(name), format!("{head}{RULE}")));
        }
    }
    for (index, version) in versions(spec).iter().enumerate() {
        let name = text(version, "/name");
        if !lifecycle::is_dns_1035_label(name) {
            errors.push(FieldError::invalid(
                format!("spec.versions[{index}].name"),
                &json!(name),
                RULE,
            ));
            if index == 0 {
                errors.push(FieldError::invalid("spec.version", &json!(name), RULE));
            }
        }
    }
}

fn conversion(spec: &Value, errors: &mut Vec<FieldError>) {
    if text(spec, "/conversion/strategy") != "Webhook" {
        return;
    }
    let webhook = spec.pointer("/conversion/webhook");
    if webhook.and_then(|webhook| webhook.get("clientConfig")).is_none() {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(
            "spec.conversion.webhookClientConfig",
            detail,
        ));
    }
    if webhook
        .and_then(|webhook| webhook.get("conversionReviewVersions"))
        .is_none()
    {
        errors.push(FieldError::required(
            "spec.conversion.conversionReviewVersions",
            "",
        ));
    }
}

/// One version is stored, and whatever was stored once is still served.
fn storage(definition: &Value, versions: &[Value], errors: &mut Vec<FieldError>) {
    let names: Vec<&str> = versions.iter().map(|version| text(version, "/name")).collect();
    let stored: Vec<&str> = versions
        .iter()
        .filter(|version| version.get("storage") == Some(&json!(true)))
        .map(|version| text(version, "/name"))
        .collect();
    let shown = || versions.iter().map(as_go).collect::<Value>();
    let mut wrong = |detail: &str| errors.push(FieldError::invalid("spec.versions", &shown(), detail));
    if names
        .iter()
        .enumerate()
        .any(|(index, name)| names.iter().take(index).any(|known| known == name))
    {
        wrong("must contain unique version names");
    }
    if stored.len() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    let before = definition
        .pointer("/status/storedVersions")
        .and_then(Value::as_array);
    let before: Vec<&str> = before.into_iter().flatten().filter_map(Value::as_str).collect();
    for (index, name) in before
        .iter()
        .enumerate()
        .filter(|(_, name)| !names.contains(name))
    {
        errors.push(FieldError::invalid(
            format!("status.storedVersions[{index}]"),
            &json!(name),
            format!("missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"),
        ));
    }
    match stored.as_slice() {
        [] if before.is_empty() => errors.push(FieldError::invalid(
            "status.storedVersions",
            &Value::Null,
            "must have at least one stored version",
        )),
        [first, .., last] if !before.contains(last) => errors.push(FieldError::invalid(
            "status.storedVersions",
            &json!([first]),
            format!("must have the storage version {last}"),
        )),
        _ => {}
    }
}

/// A version as errors show it: the original's own type.
fn as_go(version: &Value) -> Value {
    let flag = |key: &str| version.get(key) == Some(&json!(true));
    json!({
        "Name": text(version, "/name"), "Served": flag("served"), "Storage": flag("storage"),
        "Deprecated": flag("deprecated"), "DeprecationWarning": null, "Schema": null, "Subresources": null,
        "AdditionalPrinterColumns": null, "SelectableFields": null,
    })
}

fn check_version(version: &Value, index: usize, place: &str, errors: &mut Vec<FieldError>) {
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
