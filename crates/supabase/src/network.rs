//! Access to a project, autoscalers and `PodDisruptionBudgets`. Each object exists only if the spec requests it, and all
//! access leads to the gateway.

use serde_json::{Value, json};
use stanchion_api::supabase::{Gateway, IngressOptions, NetworkRules, Options};

use crate::components::{self, Component, MANAGED_BY, Project};
use crate::put;

/// The gateway's port.
const PORT: u16 = 8000;

/// The Ingress, if it is requested.
pub(crate) fn ingress(project: &Project<'_>) -> Option<Value> {
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
        let tls = json!([{ "secretName": secret, "hosts": hosts }]);
        put(&mut spec, "tls", tls);
    }
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": project.name, "labels": labels(project), "annotations": options.annotations },
        "spec": spec,
    }))
}

/// The `HTTPRoute`, if it is requested.
pub(crate) fn http_route(project: &Project<'_>) -> Option<Value> {
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
pub(crate) fn network_policies(project: &Project<'_>) -> Vec<Value> {
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

/// The autoscaler of a component, if it is requested.
pub(crate) fn autoscaler(component: &Component, options: &Options, project: &Project<'_>) -> Option<Value> {
    let scaling = options.autoscaling.as_ref()?;
    let name = component.child_name(project.name);
    let metric = |resource: &str, share: u32| {
        json!({ "type": "Resource", "resource": {
            "name": resource,
            "target": { "type": "Utilization", "averageUtilization": share },
        }})
    };
    let mut metrics = vec![metric("cpu", scaling.target_cpu_utilization_percentage)];
    metrics.extend(
        scaling
            .target_memory_utilization_percentage
            .map(|share| metric("memory", share)),
    );
    Some(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": name, "labels": component.labels(project.name) },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": metrics,
        },
    }))
}

/// The `PodDisruptionBudget` of a component, if it is requested.
pub(crate) fn disruption_budget(component: &Component, project: &Project<'_>) -> Option<Value> {
    let budget = project.spec.pod_disruption_budget.as_ref()?;
    let labels = component.labels(project.name);
    Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": component.child_name(project.name), "labels": labels },
        "spec": { "maxUnavailable": budget.max_unavailable, "selector": { "matchLabels": labels } },
    }))
}

/// The labels of objects that belong to the project but to no component.
fn labels(project: &Project<'_>) -> Value {
    json!({
        "app.kubernetes.io/name": "supabase",
        "app.kubernetes.io/instance": project.name,
        "app.kubernetes.io/part-of": "supabase",
        "app.kubernetes.io/managed-by": MANAGED_BY,
    })
}

/// The labels that exactly the pods of the project have.
fn pods_of(project: &Project<'_>) -> Value {
    json!({
        "app.kubernetes.io/instance": project.name,
        "app.kubernetes.io/part-of": "supabase",
        "app.kubernetes.io/managed-by": MANAGED_BY,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::components::test_fixture::fixture;

    #[test]
    fn nothing_is_there_that_nobody_asked_for() {
        let fixture = fixture(|_| {});
        let project = fixture.project();
        assert_eq!(ingress(&project), None);
        assert_eq!(http_route(&project), None);
        assert!(network_policies(&project).is_empty());
        for (component, options) in crate::components::wanted(&fixture.spec) {
            assert_eq!(autoscaler(component, options, &project), None);
            assert_eq!(disruption_budget(component, &project), None);
        }
    }

    #[test]
    fn everything_leads_to_the_gateway() {
        let fixture = fixture(|spec| {
            spec["ingress"] = json!({
                "enabled": true, "className": "nginx", "host": "a.example", "tlsSecretName": "tls",
                "annotations": { "x": "y" },
            });
            spec["gateway"] = json!({
                "parentRefs": [{ "name": "public", "namespace": "gates", "sectionName": "https" }],
                "hostnames": ["b.example"],
            });
            spec["networkPolicy"] = json!({ "from": [{ "namespaceSelector": {} }] });
            spec["podDisruptionBudget"] = json!({});
        });
        let project = fixture.project();
        let (kong, _) = crate::components::wanted(&fixture.spec).next().unwrap();
        let all = json!([
            ingress(&project),
            http_route(&project),
            network_policies(&project),
            disruption_budget(kong, &project),
        ]);
        insta::assert_yaml_snapshot!(all);
    }
}
