//! Validation of a `CustomResourceDefinition`.

mod openapi;
mod version;

use serde_json::{Value, json};

use crate::error::{Fault, FieldError};
use crate::lifecycle;
use crate::store::text;

/// Rejects a CRD that could not be served.
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
        version::check(version, index, &place, &mut errors);
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

/// Exactly one version is stored, and every stored version is still declared.
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

/// A version in the format of errors: with the original's Go type.
fn as_go(version: &Value) -> Value {
    let flag = |key: &str| version.get(key) == Some(&json!(true));
    json!({
        "Name": text(version, "/name"), "Served": flag("served"), "Storage": flag("storage"),
        "Deprecated": flag("deprecated"), "DeprecationWarning": null, "Schema": null, "Subresources": null,
        "AdditionalPrinterColumns": null, "SelectableFields": null,
    })
}
