//! The Service of a component.

use serde_json::{Value, json};

use super::{Component, Project};

/// A Service in the cluster with the component's ports.
pub fn service(component: &Component, project: &Project<'_>) -> Value {
    let ports: Vec<Value> = component
        .ports
        .iter()
        .filter(|port| port.service)
        .map(|port| json!({ "name": port.name, "port": port.number, "targetPort": port.number, "protocol": "TCP" }))
        .collect();
    let labels = component.labels(project.name);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": component.child_name(project.name), "labels": labels },
        "spec": { "type": "ClusterIP", "selector": labels, "ports": ports },
    })
}
