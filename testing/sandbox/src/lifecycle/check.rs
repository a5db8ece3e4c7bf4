//! Validation: the schema of custom resources; names, immutable fields and the most common mistakes of built-in kinds.

use serde_json::{Value, json};

use super::{immutable, names, rules};
use crate::error::FieldError;
use crate::handlers::Endpoint;
use crate::resource::Resource;
use crate::schema::definition;
use crate::selector::Selector;
use crate::store::text;

/// All errors of an object, or of a change of it.
pub(crate) fn check(
    resource: &Resource,
    endpoint: Endpoint,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none() {
        errors.extend(names::check_name(resource, object));
    }
    errors.extend(names::check_metadata(resource, object, "metadata"));
    if let Some(old) = old {
        // The original checks metadata twice, and reports errors twice.
        errors.extend(finalizers(object, old));
        errors.extend(finalizers(object, old));
    }
    if let Some(custom) = &resource.custom {
        let mut found = custom.check(resource, object, old);
        if endpoint == Endpoint::Status {
            // Here the original omits the status from the path.
            for error in &mut found {
                if let Some(inner) = error.field.strip_prefix("status.") {
                    error.detail = error.detail.replacen(&error.field, inner, 1);
                }
            }
        }
        errors.extend(found);
        return errors;
    }
    errors.extend(kind(resource, object, old));
    errors.extend(rules::check(resource, object, old));
    if let Some(old) = old {
        errors.extend(immutable::check(resource, object, old));
    }
    errors
}

/// An object that is being deleted cannot get new finalizers.
fn finalizers(object: &Value, old: &Value) -> Vec<FieldError> {
    if text(old, "/metadata/deletionTimestamp").is_empty() {
        return Vec::new();
    }
    let list = |object: &Value| {
        object
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let before = list(old);
    let added: Vec<Value> = list(object)
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    if added.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = added.iter().map(Value::to_string).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        names.join(", ")
    );
    vec![FieldError::forbidden("metadata.finalizers", detail)]
}

fn kind(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match &*resource.storage {
        "apps/deployments" | "apps/replicasets" | "apps/statefulsets" | "apps/daemonsets" => {
            workload(object, &resource.kind)
        }
        "batch/jobs" => containers(object, "/spec/template/spec", "spec.template.spec")
            .into_iter()
            .chain(job_restart(object))
            .collect(),
        "/pods" => containers(object, "/spec", "spec"),
        "/services" => ports(object),
        "apiextensions.k8s.io/customresourcedefinitions" => definition::check(object, old),
        "/configmaps" | "/secrets" => data_keys(object),
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings" => {
            role_ref(object)
        }
        _ => Vec::new(),
    }
}

fn workload(object: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(replicas) = object
        .pointer("/spec/replicas")
        .filter(|n| n.as_i64().is_some_and(|n| n < 0))
    {
        errors.push(FieldError::invalid(
            "spec.replicas",
            replicas,
            "must be greater than or equal to 0",
        ));
    }
    let labels = object
        .pointer("/spec/template/metadata/labels")
        .cloned()
        .unwrap_or_else(|| json!({}));
    match object.pointer("/spec/selector") {
        None => {
            errors.push(FieldError::required("spec.selector", ""));
            let shown = object
                .pointer("/spec/template/metadata/labels")
                .unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(
                "spec.template.metadata.labels",
                shown,
                "`selector` does not match template `labels`",
            ));
        }
        Some(selector) if selector.as_object().is_some_and(serde_json::Map::is_empty) => {
            errors.push(FieldError::invalid(
                "spec.selector",
                selector,
                format!("empty selector is invalid for {}", kind.to_lowercase()),
            ));
        }
        Some(selector) => {
            let template = json!({"metadata": {"labels": labels}});
            if !Selector::of_labels(selector).matches(&template) {
                errors.push(FieldError::invalid(
                    "spec.template.metadata.labels",
                    &labels,
                    "`selector` does not match template `labels`",
                ));
            }
        }
    }
    errors.extend(containers(object, "/spec/template/spec", "spec.template.spec"));
    let policy = text(object, "/spec/template/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" {
        errors.push(FieldError::new(
            crate::error::Fault::NotSupported,
            "spec.template.spec.restartPolicy",
            Some(json!(policy)),
            "supported values: \"Always\"",
        ));
    }
    errors
}

fn job_restart(object: &Value) -> Option<FieldError> {
    let policy = text(object, "/spec/template/spec/restartPolicy");
    let field = "spec.template.spec.restartPolicy";
    (!matches!(policy, "OnFailure" | "Never"))
        .then(|| FieldError::required(field, "valid values: \"OnFailure\", \"Never\""))
}

fn containers(object: &Value, pointer: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = object
        .pointer(&format!("{pointer}/containers"))
        .and_then(Value::as_array);
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        return vec![FieldError::required(format!("{path}.containers"), "")];
    };
    for (index, container) in list.iter().enumerate() {
        let at = format!("{path}.containers[{index}]");
        if text(container, "/name").is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        if text(container, "/image").is_empty() {
            errors.push(FieldError::required(format!("{at}.image"), ""));
        }
    }
    errors
}

fn ports(object: &Value) -> Vec<FieldError> {
    let ports = object
        .pointer("/spec/ports")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let free = text(object, "/spec/type") == "ExternalName" || text(object, "/spec/clusterIP") == "None";
    if ports == 0 && !free {
        vec![FieldError::required("spec.ports", "")]
    } else {
        Vec::new()
    }
}

fn data_keys(object: &Value) -> Vec<FieldError> {
    let keys = object
        .get("data")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| key);
    keys.filter(|key| key.as_str() == ".." || key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .map(|key| FieldError::invalid(format!("data[{key}]"), &json!(key), "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"))
        .collect()
}

fn role_ref(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(object, "/roleRef/kind");
    let known = if text(object, "/kind") == "RoleBinding" {
        "\"Role\", \"ClusterRole\""
    } else {
        "\"ClusterRole\""
    };
    if !known.contains(&format!("\"{kind}\"")) {
        errors.push(FieldError::new(
            crate::error::Fault::NotSupported,
            "roleRef.kind",
            Some(json!(kind)),
            format!("supported values: {known}"),
        ));
    }
    if text(object, "/roleRef/name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    errors
}
