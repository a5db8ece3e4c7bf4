//! Kinds that describe the cluster: classes, quotas, endpoints.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::super::names;
use super::values::{items, one_of};
use crate::error::FieldError;
use crate::schema::quantity;
use crate::store::text;

/// The highest priority that users may define.
const HIGHEST: i64 = 1_000_000_000;

/// The value and the policy of a `PriorityClass`.
pub(super) fn priority_class(object: &Value, errors: &mut Vec<FieldError>) {
    let name = text(object, "/metadata/name");
    let is_own = matches!(name, "system-cluster-critical" | "system-node-critical");
    if name.starts_with("system-") && !is_own {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        errors.push(FieldError::forbidden("metadata.name", detail));
    } else if !is_own
        && object
            .get("value")
            .and_then(Value::as_i64)
            .is_some_and(|value| value > HIGHEST)
    {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden("value", detail));
    }
    let policy = text(object, "/preemptionPolicy");
    if !policy.is_empty() {
        one_of(
            "preemptionPolicy",
            policy,
            &["PreemptLowerPriority", "Never"],
            errors,
        );
    }
}

/// The provisioner and the policies of a `StorageClass`.
pub(super) fn storage_class(object: &Value, errors: &mut Vec<FieldError>) {
    match text(object, "/provisioner") {
        "" => errors.push(FieldError::required("provisioner", "")),
        name => names::check_key(&name.to_lowercase(), "provisioner", errors),
    }
    for (key, known) in [
        ("reclaimPolicy", ["Delete", "Retain"]),
        ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
    ] {
        let word = text(object, &format!("/{key}"));
        if !word.is_empty() {
            one_of(key, word, &known, errors);
        }
    }
}

/// The controller of an `IngressClass`.
pub(super) fn ingress_class(object: &Value, errors: &mut Vec<FieldError>) {
    match text(object, "/spec/controller") {
        "" => errors.push(FieldError::required("spec.controller", "")),
        name if !name.contains('/') => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid("spec.controller", &json!(name), detail));
        }
        _ => {}
    }
}

/// The addresses of an `EndpointSlice`.
pub(super) fn endpoint_slice(object: &Value, errors: &mut Vec<FieldError>) {
    let kind = text(object, "/addressType");
    if kind.is_empty() {
        errors.push(FieldError::required("addressType", ""));
        return;
    }
    one_of("addressType", kind, &["FQDN", "IPv4", "IPv6"], errors);
    let is_valid = |address: &str| match kind {
        "IPv4" => address.parse::<Ipv4Addr>().is_ok(),
        "IPv6" => address.parse::<Ipv6Addr>().is_ok(),
        _ => true,
    };
    for (at, endpoint) in items(object, "endpoints", "/endpoints") {
        for (at, address) in items(endpoint, &format!("{at}.addresses"), "/addresses") {
            if !address.as_str().is_some_and(is_valid) {
                let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                errors.push(FieldError::invalid(at, address, detail));
            }
        }
    }
}

/// The amounts of a `ResourceQuota`.
pub(super) fn quota(object: &Value, errors: &mut Vec<FieldError>) {
    const COUNTED: [&str; 8] = [
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
    ];
    let amounts = object.pointer("/spec/hard").and_then(Value::as_object);
    for (name, amount) in amounts.into_iter().flatten() {
        let at = format!("spec.hard[{name}]");
        let shown = amount.as_str().and_then(quantity::canonical).unwrap_or_default();
        if shown.starts_with('-') {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&at, &json!(shown), detail));
        }
        let is_counted = COUNTED.contains(&name.as_str()) || name.starts_with("count/");
        if is_counted && shown.ends_with(['m', 'u', 'n']) {
            errors.push(FieldError::invalid(&at, &json!(shown), "must be an integer"));
        }
    }
}
