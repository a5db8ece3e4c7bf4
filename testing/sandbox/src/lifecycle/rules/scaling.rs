//! Autoscalers, `PodDisruptionBudgets` and claims.

use serde_json::{Value, json};

use super::values::{at_most_all, int_or_percent, items, one_of, subdomain};
use crate::error::FieldError;
use crate::schema::quantity;
use crate::store::text;

/// The target, the limits and the metrics of an autoscaler.
pub(super) fn autoscaler(object: &Value, errors: &mut Vec<FieldError>) {
    const KINDS: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let number = |key: &str| object.pointer(&format!("/spec/{key}")).and_then(Value::as_i64);
    let (least, most) = (
        number("minReplicas").unwrap_or(1),
        number("maxReplicas").unwrap_or(0),
    );
    if least < 1 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid("spec.minReplicas", &json!(least), detail));
    }
    if most < 1 {
        let detail = "must be set and greater than 0";
        errors.push(FieldError::required("spec.maxReplicas", detail));
    }
    if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &json!(most), detail));
    }
    for key in ["kind", "name"] {
        if text(object, &format!("/spec/scaleTargetRef/{key}")).is_empty() {
            errors.push(FieldError::required(format!("spec.scaleTargetRef.{key}"), ""));
        }
    }
    let version = text(object, "/spec/scaleTargetRef/apiVersion");
    if version.is_empty() {
        let detail = "apiVersion must specify API group";
        errors.push(FieldError::invalid(
            "spec.scaleTargetRef.apiVersion",
            &json!(version),
            detail,
        ));
    }
    let metrics: Vec<(String, &Value)> = items(object, "spec.metrics", "/spec/metrics").collect();
    if least == 0
        && !metrics
            .iter()
            .any(|(_, metric)| matches!(text(metric, "/type"), "Object" | "External"))
    {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden("spec.metrics", detail));
    }
    for (at, metric) in metrics {
        let kind = text(metric, "/type");
        let Some((_, source)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            // The original reports it twice.
            for _ in 0..2 {
                one_of(
                    &format!("{at}.type"),
                    kind,
                    &KINDS.map(|(known, _)| known),
                    errors,
                );
            }
            continue;
        };
        let at = format!("{at}.{source}");
        match metric.get(source) {
            None => {
                let detail = "must populate information for the given metric source";
                errors.push(FieldError::required(at, detail));
            }
            Some(given) if kind == "Resource" => resource_target(&at, given, errors),
            Some(_) => {}
        }
    }
}

/// The target utilization of a resource.
fn resource_target(at: &str, resource: &Value, errors: &mut Vec<FieldError>) {
    let field = format!("{at}.target.averageUtilization");
    let share = resource.pointer("/target/averageUtilization");
    if share.is_none() && resource.pointer("/target/averageValue").is_none() {
        let detail = "must set either a target raw value or a target utilization";
        errors.push(FieldError::required(&field, detail));
    }
    if let Some(share) = share.filter(|share| share.as_i64().is_some_and(|share| share < 1)) {
        errors.push(FieldError::invalid(field, share, "must be greater than 0"));
    }
}

/// One of two limits, and a policy.
pub(super) fn disruption_budget(object: &Value, errors: &mut Vec<FieldError>) {
    let limit = |key: &str| object.pointer(&format!("/spec/{key}"));
    let (least, most) = (limit("minAvailable"), limit("maxUnavailable"));
    if let (Some(least), Some(most)) = (least, most) {
        // Shown with the names of its Go fields.
        let shown = json!({
            "MinAvailable": least, "Selector": limit("selector"), "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": limit("unhealthyPodEvictionPolicy"),
        });
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid("spec", &shown, detail));
    }
    for (key, value) in [("minAvailable", least), ("maxUnavailable", most)] {
        if let Some(value) = value {
            int_or_percent(&format!("spec.{key}"), value, errors);
            at_most_all(&format!("spec.{key}"), value, errors);
        }
    }
    let policy = text(object, "/spec/unhealthyPodEvictionPolicy");
    if !policy.is_empty() {
        let known = ["AlwaysAllow", "IfHealthyBudget"];
        one_of("spec.unhealthyPodEvictionPolicy", policy, &known, errors);
    }
}

/// Access mode, size and source of a claim.
pub(super) fn claim(object: &Value, errors: &mut Vec<FieldError>) {
    const MODES: [&str; 4] = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    let modes: Vec<&str> = items(object, "", "/spec/accessModes")
        .filter_map(|(_, mode)| mode.as_str())
        .collect();
    for mode in &modes {
        one_of("spec.accessModes", mode, &MODES, errors);
    }
    if modes.len() > 1 && modes.contains(&"ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden("spec.accessModes", detail));
    }
    match object.pointer("/spec/resources/requests/storage") {
        None => errors.push(FieldError::required("spec.resources[storage]", "")),
        Some(size) => {
            let shown = size.as_str().and_then(quantity::canonical).unwrap_or_default();
            if shown == "0" || shown.starts_with('-') {
                let detail = "must be greater than zero";
                errors.push(FieldError::invalid(
                    "spec.resources[storage]",
                    &json!(shown),
                    detail,
                ));
            }
        }
    }
    let class = text(object, "/spec/storageClassName");
    if !class.is_empty() {
        subdomain("spec.storageClassName", class, errors);
    }
    let mode = text(object, "/spec/volumeMode");
    if !mode.is_empty() {
        one_of("spec.volumeMode", mode, &["Block", "Filesystem"], errors);
    }
}
