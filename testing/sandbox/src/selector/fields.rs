//! The fields that field selectors support, and their values in an object.

use serde_json::Value;

use crate::error::ApiError;
use crate::resource::Resource;

/// Selectable fields of built-in kinds, in addition to name and namespace.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "/events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    (
        "/pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    ("/secrets", &["type"]),
    ("/namespaces", &["status.phase"]),
    ("/nodes", &["spec.unschedulable"]),
    ("/services", &["spec.clusterIP", "spec.type"]),
    ("/replicationcontrollers", &["status.replicas"]),
    ("apps/replicasets", &["status.replicas"]),
    ("batch/jobs", &["status.successful"]),
    (
        "certificates.k8s.io/certificatesigningrequests",
        &["spec.signerName"],
    ),
];

/// Paths, values, and whether they must be equal.
pub(super) fn parse(text: &str, resource: &Resource) -> Result<Vec<(String, String, bool)>, ApiError> {
    let mut fields = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (path, value, true)
        } else {
            return Err(ApiError::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            )));
        };
        let known = matches!(path, "metadata.name" | "metadata.namespace")
            || FIELDS
                .iter()
                .any(|(storage, paths)| *storage == &*resource.storage && paths.contains(&path))
            || resource
                .custom
                .as_ref()
                .is_some_and(|custom| custom.selectable.iter().any(|p| p == path));
        if !known {
            let own =
                resource.custom.is_some() || FIELDS.iter().any(|(storage, _)| *storage == &*resource.storage);
            return Err(ApiError::bad_request(if own {
                format!("field label not supported: {path}")
            } else {
                format!(
                    "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }));
        }
        fields.push((path.to_owned(), value.to_owned(), equal));
    }
    Ok(fields)
}

/// A field in the format of selectors.
pub(super) fn value(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |value, key| value.get(key));
    match (found, path) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(Value::Object(source)), "source") => source
            .get("component")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        (Some(Value::Null) | None, "spec.hostNetwork" | "spec.unschedulable") => "false".to_owned(),
        (Some(Value::Null) | None, _) => String::new(),
        (Some(other), _) => other.to_string(),
    }
}
