//! `PodDisruptionBudgets` and claims.

use serde_json::{Value, json};

use super::values::{at_most_all, int_or_percent, items, one_of, subdomain};
use crate::error::FieldError;
use crate::schema::quantity;
use crate::store::text;

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
