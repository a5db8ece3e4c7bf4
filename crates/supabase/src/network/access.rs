//! Ingress, `HTTPRoute` and `NetworkPolicies`. All of them lead only to the gateway.

use serde_json::{Value, json};
use stanchion_api::supabase::{Gateway, IngressOptions, NetworkRules};

use super::{labels, pods_of};
use crate::components::{self, Project};
use crate::json::put;

/// The gateway's port.
const PORT: u16 = 8000;

/// The Ingress, if it is requested.
pub fn ingress(project: &Project<'_>) -> Option<Value> {
    let options: &IngressOptions = project.spec.ingress.as_ref().filter(|ingress| ingress.enabled)?;
    let backend = json!({ "service": { "name": project.host("kong"), "port": { "number": PORT } } });
    let mut rule =
        json!({ "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } });
    let host = options.host.as_deref().filter(|host| !host.is_empty());
    if let Some(host) = host {
        put(&mut rule, "host", host);
    }
    let mut spec = json!({ "rules": [rule] });
    if let Some(class) = &options.class_name {
        put(&mut spec, "ingressClassName", class.as_str());
    }
    if let Some(secret) = options.tls_secret_name.as_deref().filter(|name| !name.is_empty()) {
        let hosts: Vec<&str> = host.into_iter().collect();
        put(
            &mut spec,
            "tls",
            json!([{ "secretName": secret, "hosts": hosts }]),
        );
    }
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": project.name, "labels": labels(project), "annotations": options.annotations },
        "spec": spec,
    }))
}

/// The `HTTPRoute`, if it is requested.
pub fn http_route(project: &Project<'_>) -> Option<Value> {
    let gateway: &Gateway = project.spec.gateway.as_ref()?;
    let mut spec = json!({
        "parentRefs": gateway.parent_refs,
        "rules": [{ "backendRefs": [{ "name": project.host("kong"), "port": PORT }] }],
    });
    if !gateway.hostnames.is_empty() {
        put(&mut spec, "hostnames", json!(gateway.hostnames));
    }
    Some(json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "name": project.name, "labels": labels(project), "annotations": gateway.annotations },
        "spec": spec,
    }))
}

/// The `NetworkPolicies`, if they are requested: one for all pods, which allows the project's own, and one for each
/// component with outside clients, which allows those of the spec.
pub fn network_policies(project: &Project<'_>) -> Vec<Value> {
    let Some(rules) = &project.spec.network_policy else {
        return Vec::new();
    };
    let NetworkRules { from } = rules;
    let own = json!({ "from": [{ "podSelector": { "matchLabels": pods_of(project) } }] });
    let policy = |name: &str, pods: &Value, ingress: &Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": { "name": name, "labels": labels(project) },
            "spec": { "podSelector": { "matchLabels": pods }, "policyTypes": ["Ingress"], "ingress": [ingress] },
        })
    };
    let open = components::wanted(project.spec).filter(|(component, _)| component.open);
    let doors = open.map(|(component, _)| {
        let mut pods = pods_of(project);
        put(&mut pods, "app.kubernetes.io/name", component.name);
        let ports = component.ports.iter().filter(|port| port.service);
        let ports: Vec<Value> = ports.map(|port| json!({ "port": port.number })).collect();
        let mut door = json!({ "ports": ports });
        if !from.is_empty() {
            put(&mut door, "from", json!(from));
        }
        policy(&component.child_name(project.name), &pods, &door)
    });
    std::iter::once(policy(project.name, &pods_of(project), &own))
        .chain(doors)
        .collect()
}
