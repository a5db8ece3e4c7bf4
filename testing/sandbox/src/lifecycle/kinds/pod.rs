//! Pods: quality of service class and tolerations.

use serde_json::{Value, json};

use super::absent;
use crate::store::text;

/// The quality of service class, from requests and limits.
pub(super) fn quality(pod: &Value) -> &'static str {
    let containers: Vec<&Value> = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let resources = |container: &Value, kind: &str| {
        container
            .get("resources")
            .and_then(|r| r.get(kind))
            .cloned()
            .unwrap_or_default()
    };
    let has = |container: &&Value, kind: &str| {
        resources(container, kind)
            .as_object()
            .is_some_and(|map| !map.is_empty())
    };
    if containers
        .iter()
        .all(|c| !has(c, "limits") && !has(c, "requests"))
    {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|container| {
        let limits = resources(container, "limits");
        limits.get("cpu").is_some()
            && limits.get("memory").is_some()
            && resources(container, "requests") == limits
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

/// Pods tolerate a lost node for five minutes, and have a priority.
pub(super) fn tolerations(pod: &mut Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else {
        return;
    };
    absent(spec, "priority", json!(0));
    absent(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if let Value::Array(list) = list
            && !list.iter().any(|toleration| text(toleration, "/key") == key)
        {
            list.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}
