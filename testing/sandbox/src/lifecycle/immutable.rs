//! Immutable fields of built-in kinds.

use serde_json::{Value, json};

use crate::error::FieldError;
use crate::resource::Resource;
use crate::store::text;

/// Immutable fields of built-in kinds, as JSON pointers.
const IMMUTABLE: &[(&str, &[&str])] = &[
    ("apps/deployments", &["/spec/selector"]),
    ("apps/replicasets", &["/spec/selector"]),
    ("apps/daemonsets", &["/spec/selector"]),
    ("batch/jobs", &["/spec/selector", "/spec/completionMode"]),
    ("/secrets", &["/type"]),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        &[
            "/spec/group",
            "/spec/scope",
            "/spec/names/kind",
            "/spec/names/plural",
        ],
    ),
    (
        "storage.k8s.io/storageclasses",
        &["/provisioner", "/reclaimPolicy", "/volumeBindingMode"],
    ),
];

/// The mutable fields of a `StatefulSet`.
const STATEFUL_SET: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// All errors of a change of immutable fields.
pub(super) fn check(resource: &Resource, object: &Value, old: &Value) -> Vec<FieldError> {
    let storage = &*resource.storage;
    let mut errors = Vec::new();
    for pointer in IMMUTABLE
        .iter()
        .filter(|(known, _)| *known == storage)
        .flat_map(|(_, pointers)| *pointers)
    {
        let (new, before) = (object.pointer(pointer), old.pointer(pointer));
        if new != before {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            errors.push(FieldError::invalid(
                field,
                new.unwrap_or(&Value::Null),
                "field is immutable",
            ));
        }
    }
    let flag = |object: &Value| {
        object
            .get("immutable")
            .and_then(Value::as_bool)
            .unwrap_or_default()
    };
    match storage {
        "/configmaps" | "/secrets" if flag(old) => {
            if !flag(object) {
                errors.push(FieldError::forbidden(
                    "immutable",
                    "field is immutable when `immutable` is set",
                ));
            }
            for key in ["data", "binaryData"] {
                if object.get(key) != old.get(key) {
                    errors.push(FieldError::forbidden(
                        key,
                        "field is immutable when `immutable` is set",
                    ));
                }
            }
        }
        "apps/statefulsets" => {
            let fixed = |object: &Value| {
                let mut spec = object
                    .get("spec")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                spec.retain(|key, _| !STATEFUL_SET.contains(&key.as_str()));
                spec
            };
            if fixed(object) != fixed(old) {
                errors.push(FieldError::forbidden("spec", "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"));
            }
        }
        "batch/jobs" => errors.extend(job(object, old)),
        "/persistentvolumeclaims" => {
            let is_bound = text(old, "/status/phase") == "Bound";
            let fixed = |object: &Value| {
                let mut spec = object
                    .get("spec")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                for key in ["volumeName", "volumeAttributesClassName"] {
                    spec.shift_remove(key);
                }
                if is_bound {
                    spec.shift_remove("resources");
                }
                spec
            };
            if fixed(object) != fixed(old) {
                errors.push(FieldError::forbidden("spec", "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"));
            }
        }
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings"
            if object.get("roleRef") != old.get("roleRef") =>
        {
            // Shown with the names of its Go fields.
            let role = |key: &str| text(object, &format!("/roleRef/{key}")).to_owned();
            let shown = json!({"APIGroup": role("apiGroup"), "Kind": role("kind"), "Name": role("name")});
            errors.push(FieldError::invalid("roleRef", &shown, "cannot change roleRef"));
        }
        "/services" => {
            let (new, before) = (text(object, "/spec/clusterIP"), text(old, "/spec/clusterIP"));
            if !before.is_empty() && new != before && text(object, "/spec/type") != "ExternalName" {
                let shown = json!([new]);
                errors.push(FieldError::invalid(
                    "spec.clusterIPs[0]",
                    &shown,
                    "may not change once set",
                ));
            }
        }
        _ => {}
    }
    errors
}

/// The number of runs and the template of a Job are fixed; scheduling fields may change until its pods run.
fn job(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let completions = |object: &Value| object.pointer("/spec/completions").cloned();
    let is_indexed = text(old, "/spec/completionMode") == "Indexed";
    if completions(object) != completions(old) && !is_indexed {
        let value = completions(object).unwrap_or_default();
        errors.push(FieldError::invalid(
            "spec.completions",
            &value,
            "field is immutable",
        ));
    }
    let is_waiting =
        old.pointer("/spec/suspend") == Some(&json!(true)) && text(old, "/status/startTime").is_empty();
    let fixed = |object: &Value| {
        let mut template = object.pointer("/spec/template").cloned().unwrap_or_default();
        if is_waiting {
            for (part, keys) in [
                ("/metadata", &["labels", "annotations"][..]),
                (
                    "/spec",
                    &["nodeSelector", "affinity", "tolerations", "schedulingGates"],
                ),
            ] {
                if let Some(Value::Object(part)) = template.pointer_mut(part) {
                    part.retain(|key, _| !keys.contains(&key.as_str()));
                }
            }
        }
        template
    };
    if fixed(object) != fixed(old) {
        let value = object.pointer("/spec/template").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid("spec.template", value, "field is immutable"));
    }
    errors
}
