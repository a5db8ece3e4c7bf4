//! Requests and limits of a container.

use serde_json::{Map, Value, json};

use super::super::super::names;
use crate::error::FieldError;
use crate::schema::quantity;

/// The resources of containers without a domain in their name.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Other resources without a domain, which quotas and claims have.
const STANDARD: [&str; 16] = [
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
];
const HUGE_PAGES: &str = "hugepages-";

/// Names, amounts, and that no request exceeds its limit.
pub(super) fn check(at: &str, resources: Option<&Value>, errors: &mut Vec<FieldError>) {
    let nothing = Map::new();
    let map = |key: &str| {
        let map = resources.and_then(|resources| resources.get(key));
        map.and_then(Value::as_object).unwrap_or(&nothing)
    };
    let (requests, limits) = (map("requests"), map("limits"));
    for (key, amounts) in [("limits", limits), ("requests", requests)] {
        for (name, amount) in amounts {
            let at = format!("{at}.{key}[{name}]");
            name_of(&at, name, errors);
            amount_of(&at, name, amount, errors);
        }
    }
    for (name, request) in requests {
        let shared = OF_CONTAINERS.contains(&name.as_str());
        let overcommitted = shared || !is_known(name);
        match limits.get(name) {
            Some(limit) => {
                let (Some(wanted), Some(most)) = (number(request), number(limit)) else {
                    continue;
                };
                let words = match overcommitted {
                    true if wanted > most => "less than or equal to",
                    false if wanted != most => "equal to",
                    _ => continue,
                };
                let detail = format!("must be {words} {name} limit of {}", shown(limit));
                let at = format!("{at}.requests");
                errors.push(FieldError::invalid(at, &json!(shown(request)), detail));
            }
            None if !overcommitted => {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(format!("{at}.limits"), detail));
            }
            None => {}
        }
    }
    let named = |start: &str| {
        requests
            .keys()
            .chain(limits.keys())
            .any(|name| name.starts_with(start))
    };
    if named(HUGE_PAGES) && !named("cpu") && !named("memory") {
        let detail = "HugePages require cpu or memory";
        errors.push(FieldError::forbidden(at, detail));
    }
}

/// Whether containers can have this resource.
fn is_known(name: &str) -> bool {
    OF_CONTAINERS.contains(&name) || name.starts_with(HUGE_PAGES) || name.contains('/')
}

fn name_of(at: &str, name: &str, errors: &mut Vec<FieldError>) {
    names::check_key(name, at, errors);
    if is_known(name) {
        return;
    }
    if !STANDARD.contains(&name) && name != "services.loadbalancers" {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(at, &json!(name), detail));
    }
    let detail = "must be a standard resource for containers";
    errors.push(FieldError::invalid(at, &json!(name), detail));
}

fn amount_of(at: &str, name: &str, amount: &Value, errors: &mut Vec<FieldError>) {
    let shown = shown(amount);
    if shown.starts_with('-') {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(at, &json!(shown), detail));
    }
    // A whole number has no suffix for a fraction in its canonical form.
    if name.contains('/') && shown.ends_with(['m', 'u', 'n']) {
        errors.push(FieldError::invalid(at, &json!(shown), "must be an integer"));
    }
}

fn shown(amount: &Value) -> String {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    quantity::canonical(&text).unwrap_or(text)
}

fn number(amount: &Value) -> Option<i128> {
    quantity::number(&shown(amount))
}
