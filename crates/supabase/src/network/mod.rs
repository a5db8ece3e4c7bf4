//! Access to a project, autoscalers and `PodDisruptionBudgets`. Each object exists only if the spec requests it.

mod access;
mod pods;

use serde_json::{Value, json};

use crate::components::{MANAGED_BY, Project};

pub use access::{http_route, ingress, network_policies};
pub use pods::{autoscaler, disruption_budget};

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
