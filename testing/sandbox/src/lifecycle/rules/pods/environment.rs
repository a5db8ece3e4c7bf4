//! Environment variables of a container.

use serde_json::{Value, json};

use super::super::values::{items, one_of};
use crate::error::FieldError;
use crate::store::text;

const NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];
const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The variables and their sources.
pub(super) fn check(at: &str, container: &Value, errors: &mut Vec<FieldError>) {
    for (at, variable) in items(container, &format!("{at}.env"), "/env") {
        name(&format!("{at}.name"), text(variable, "/name"), errors);
        if let Some(source) = variable.get("valueFrom") {
            source_of(
                &format!("{at}.valueFrom"),
                text(variable, "/value"),
                source,
                errors,
            );
        }
    }
    let at = format!("{at}.envFrom");
    for (item, source) in items(container, &at, "/envFrom") {
        name(&format!("{item}.prefix"), text(source, "/prefix"), errors);
        let given = ["configMapRef", "secretRef"]
            .iter()
            .filter(|key| source.get(**key).is_some());
        let detail = match given.count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(&at, &json!(""), detail));
    }
}

fn name(at: &str, name: &str, errors: &mut Vec<FieldError>) {
    if !name.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
        errors.push(FieldError::invalid(at, &json!(name), NAME));
    }
}

fn source_of(at: &str, value: &str, source: &Value, errors: &mut Vec<FieldError>) {
    let given: Vec<&str> = SOURCES
        .into_iter()
        .filter(|key| source.get(*key).is_some())
        .collect();
    let detail = match given.len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => "",
        _ => "may not have more than one field specified at a time",
    };
    if !detail.is_empty() {
        errors.push(FieldError::invalid(at, &json!(""), detail));
    }
    for kind in given {
        let at = format!("{at}.{kind}");
        match kind {
            "fieldRef" => field(&at, text(source, "/fieldRef/fieldPath"), errors),
            "resourceFieldRef" => {
                let amount = text(source, "/resourceFieldRef/resource");
                if !amount.contains("hugepages-") {
                    one_of(&format!("{at}.resource"), amount, &AMOUNTS, errors);
                }
            }
            "configMapKeyRef" | "secretKeyRef" if text(source, &format!("/{kind}/key")).is_empty() => {
                errors.push(FieldError::required(format!("{at}.key"), ""));
            }
            _ => {}
        }
    }
}

/// A field of the pod.
pub(super) fn field(at: &str, path: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.fieldPath");
    let is_item = |map: &str| {
        path.strip_prefix(map)
            .is_some_and(|key| key.starts_with("['") && key.ends_with("']"))
    };
    let known = matches!(
        path,
        "metadata.name"
            | "metadata.namespace"
            | "metadata.uid"
            | "metadata.labels"
            | "metadata.annotations"
            | "spec.nodeName"
            | "spec.serviceAccountName"
            | "status.hostIP"
            | "status.hostIPs"
            | "status.podIP"
            | "status.podIPs"
    ) || is_item("metadata.labels")
        || is_item("metadata.annotations");
    if path.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else if !known {
        let detail = format!("error converting fieldPath: field label not supported: {path}");
        errors.push(FieldError::invalid(at, &json!(path), detail));
    }
}
