//! Assigns addresses and ports to Services.

use serde_json::{Value, json};

use super::absent;
use super::numbers::ServiceNumbers;
use crate::error::FieldError;
use crate::store::{Store, text};

/// An address cannot be used twice.
pub(super) fn taken_address(store: &Store, object: &Value) -> Option<FieldError> {
    let address = text(object, "/spec/clusterIP");
    if matches!(address, "" | "None") || text(object, "/spec/type") == "ExternalName" {
        return None;
    }
    let others = store.list("/services", None).objects;
    let taken = others
        .iter()
        .any(|(_, other)| other.text("/spec/clusterIP") == address);
    let detail = format!("failed to allocate IP {address}: provided IP is already allocated");
    taken.then(|| FieldError::invalid("spec.clusterIPs", &json!([address]), detail))
}

/// Ports of nodes that other Services use.
pub(super) fn taken_ports(store: &Store, object: &Value) -> Vec<FieldError> {
    let ports = |object: &Value| -> Vec<(Value, Value)> {
        let list = object.pointer("/spec/ports").and_then(Value::as_array);
        let ports = list.into_iter().flatten();
        ports
            .filter_map(|port| {
                Some((
                    port.get("nodePort")?.clone(),
                    port.get("protocol").cloned().unwrap_or_default(),
                ))
            })
            .collect()
    };
    let wanted = ports(object);
    if wanted.is_empty() {
        return Vec::new();
    }
    let others = store.list("/services", None).objects;
    let used: Vec<(Value, Value)> = others
        .iter()
        .flat_map(|(_, other)| ports(other.value()))
        .collect();
    let list = object.pointer("/spec/ports").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, port)| {
            let number = port.get("nodePort")?;
            let protocol = port.get("protocol").cloned().unwrap_or_default();
            let is_used = used.contains(&(number.clone(), protocol));
            let field = format!("spec.ports[{index}].nodePort");
            is_used.then(|| FieldError::invalid(field, number, "provided port is already allocated"))
        })
        .collect()
}

/// Fields that depend on the type of a Service are removed with the type, unless the change sets them.
pub(super) fn change_of_type(old: &Value, new: &mut Value) {
    let (before, now) = (text(old, "/spec/type"), text(new, "/spec/type").to_owned());
    let lost: &[&str] = match (before, now.as_str()) {
        (before, now) if before == now => return,
        (_, "ExternalName") => &[
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "internalTrafficPolicy",
            "externalTrafficPolicy",
        ],
        (_, "ClusterIP") => &["externalTrafficPolicy", "healthCheckNodePort"],
        _ => return,
    };
    let Some(Value::Object(spec)) = new.get_mut("spec") else {
        return;
    };
    for key in lost {
        if spec.get(*key) == old.pointer(&format!("/spec/{key}")) {
            spec.shift_remove(*key);
        }
    }
    if now == "ClusterIP" {
        for port in spec
            .get_mut("ports")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Value::Object(port) = port {
                port.shift_remove("nodePort");
            }
        }
    }
}

/// Sets the fields that the client left out. What it has set is not given to another Service.
pub(super) fn complete(numbers: &ServiceNumbers, object: &mut Value) {
    numbers.note(object);
    let kind = text(object, "/spec/type").to_owned();
    if kind == "ExternalName" {
        return;
    }
    let Some(Value::Object(spec)) = object.get_mut("spec") else {
        return;
    };
    let address = match spec.get("clusterIP").and_then(Value::as_str) {
        Some(given) if !given.is_empty() => given.to_owned(),
        _ => numbers.address(),
    };
    spec.insert("clusterIP".to_owned(), json!(address));
    spec.insert("clusterIPs".to_owned(), json!([address]));
    let headless_without_pods = address == "None" && !spec.contains_key("selector");
    absent(
        spec,
        "ipFamilies",
        if headless_without_pods {
            json!(["IPv4", "IPv6"])
        } else {
            json!(["IPv4"])
        },
    );
    absent(
        spec,
        "ipFamilyPolicy",
        if headless_without_pods {
            json!("RequireDualStack")
        } else {
            json!("SingleStack")
        },
    );
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        for port in spec
            .get_mut("ports")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Value::Object(port) = port
                && !port.contains_key("nodePort")
            {
                port.insert("nodePort".to_owned(), json!(numbers.port()));
            }
        }
    }
}
