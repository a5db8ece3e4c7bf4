//! Validation of a `CustomResourceDefinition`.

mod expressions;
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
    let names_of = |key: &str| {
        let list = spec.pointer(&format!("/names/{key}")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).enumerate()
    };
    for key in ["shortNames", "categories"] {
        for (index, name) in names_of(key).filter(|(_, name)| !lifecycle::is_dns_1035_label(name)) {
            let field = format!("spec.names.{key}[{index}]");
            errors.push(FieldError::invalid(field, &json!(name), RULE));
        }
    }
    let list = text(spec, "/names/listKind");
    if !list.is_empty() && list == text(spec, "/names/kind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &json!(list), detail));
    }
    let group = text(spec, "/group");
    if !group.is_empty() && !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &json!(group), detail));
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
    const REVIEWS: &str = "spec.conversion.conversionReviewVersions";
    const CLIENT: &str = "spec.conversion.webhookClientConfig";
    let strategy = text(spec, "/conversion/strategy");
    let client = spec.pointer("/conversion/webhook/clientConfig");
    let reviews = spec.pointer("/conversion/webhook/conversionReviewVersions");
    if strategy != "Webhook" {
        if !matches!(strategy, "" | "None") {
            let detail = "supported values: \"None\", \"Webhook\"";
            let field = "spec.conversion.strategy";
            errors.push(FieldError::new(
                Fault::NotSupported,
                field,
                Some(json!(strategy)),
                detail,
            ));
        }
        for field in [client.map(|_| CLIENT), reviews.map(|_| REVIEWS)]
            .into_iter()
            .flatten()
        {
            let detail = "should not be set when strategy is not set to Webhook";
            errors.push(FieldError::forbidden(field, detail));
        }
        return;
    }
    match client {
        None => errors.push(FieldError::required(
            CLIENT,
            "required when strategy is set to Webhook",
        )),
        Some(client) if client.get("url").is_some() == client.get("service").is_some() => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(CLIENT, detail));
        }
        Some(client) => {
            let scheme = text(client, "/url").split("://").next().unwrap_or_default();
            if !matches!(scheme, "" | "https") {
                let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
                errors.push(FieldError::invalid(
                    format!("{CLIENT}.url"),
                    &json!(scheme),
                    detail,
                ));
            }
        }
    }
    match reviews.and_then(Value::as_array) {
        None => errors.push(FieldError::required(REVIEWS, "")),
        Some(versions)
            if !versions
                .iter()
                .any(|version| version == "v1" || version == "v1beta1") =>
        {
            let detail = "must include at least one of v1, v1beta1";
            errors.push(FieldError::invalid(REVIEWS, &json!(versions), detail));
        }
        Some(_) => {}
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
