//! Roles, bindings and events.

use serde_json::{Value, json};

use super::values::{items, one_of};
use crate::error::FieldError;
use crate::store::text;

const GROUP: &str = "rbac.authorization.k8s.io";

/// A rule contains resources or paths, and paths are only allowed in cluster roles.
pub(super) fn role(object: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    for (at, rule) in items(object, "rules", "/rules") {
        let list = |key: &str| {
            let items = rule.get(key).and_then(Value::as_array);
            items.filter(|items| !items.is_empty())
        };
        if let Some(paths) = list("nonResourceURLs") {
            let detail = if namespaced {
                "namespaced rules cannot apply to non-resource URLs"
            } else {
                "rules cannot apply to both regular resources and non-resource URLs"
            };
            let both = ["apiGroups", "resources", "resourceNames"]
                .iter()
                .any(|key| list(key).is_some());
            if namespaced || both {
                let at = format!("{at}.nonResourceURLs");
                errors.push(FieldError::invalid(at, &json!(paths), detail));
            }
            continue;
        }
        for (key, detail) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if list(key).is_none() {
                errors.push(FieldError::required(format!("{at}.{key}"), detail));
            }
        }
    }
    let selectors = object.pointer("/aggregationRule/clusterRoleSelectors");
    let is_empty = selectors.and_then(Value::as_array).is_none_or(Vec::is_empty);
    if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) && is_empty {
        errors.push(FieldError::required(
            "aggregationRule.clusterRoleSelectors",
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ));
    }
}

/// The role and the subjects of a binding.
pub(super) fn binding(object: &Value, errors: &mut Vec<FieldError>) {
    let group = text(object, "/roleRef/apiGroup");
    one_of("roleRef.apiGroup", group, &[GROUP], errors);
    let name = text(object, "/roleRef/name");
    if let Some(sign) = ['/', '%'].into_iter().find(|sign| name.contains(*sign)) {
        let detail = format!("may not contain '{sign}'");
        errors.push(FieldError::invalid("roleRef.name", &json!(name), detail));
    }
    for (at, subject) in items(object, "subjects", "/subjects") {
        if text(subject, "/name").is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        let group = text(subject, "/apiGroup");
        if matches!(text(subject, "/kind"), "User" | "Group") && !group.is_empty() {
            one_of(&format!("{at}.apiGroup"), group, &[GROUP], errors);
        }
    }
}

/// The subject and the reporter of an event. The newer version requires more fields, and only its series may change.
pub(super) fn event(object: &Value, old: Option<&Value>, is_new: bool, errors: &mut Vec<FieldError>) {
    let namespace = text(object, "/involvedObject/namespace");
    let own = text(object, "/metadata/namespace");
    // Events about cluster-scoped objects are in the default namespace. Events with a time may be about any other
    // namespace.
    let is_fine = match (namespace, text(object, "/eventTime")) {
        ("", "") => own == "default",
        ("", _) => matches!(own, "default" | "kube-system"),
        (_, "") => namespace == own,
        _ => true,
    };
    if !is_fine {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            &json!(namespace),
            detail,
        ));
    }
    match old {
        _ if !is_new => {}
        Some(old) => {
            for field in FIXED
                .iter()
                .filter(|field| object.get(**field) != old.get(**field))
            {
                let value = object.get(*field).unwrap_or(&Value::Null);
                errors.push(FieldError::invalid(*field, value, "field is immutable"));
            }
        }
        None => new_event(object, errors),
    }
}

/// The immutable fields of an event.
const FIXED: [&str; 8] = [
    "involvedObject",
    "reason",
    "message",
    "type",
    "action",
    "reportingComponent",
    "reportingInstance",
    "eventTime",
];

fn new_event(object: &Value, errors: &mut Vec<FieldError>) {
    if text(object, "/eventTime").is_empty() {
        errors.push(FieldError::required("eventTime", ""));
    } else {
        for (field, key) in [
            ("reportingController", "reportingComponent"),
            ("reportingInstance", "reportingInstance"),
            ("action", "action"),
            ("reason", "reason"),
        ] {
            if text(object, &format!("/{key}")).is_empty() {
                errors.push(FieldError::required(field, ""));
            }
        }
        let series = object.pointer("/series/count").and_then(Value::as_i64);
        if series.is_some_and(|count| count < 2) {
            errors.push(FieldError::invalid(
                "series.count",
                &json!(""),
                "should be at least 2",
            ));
        }
    }
    let kind = text(object, "/type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(
            "type",
            &json!(""),
            format!("has invalid value: {kind}"),
        ));
    }
}
