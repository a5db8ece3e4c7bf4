//! Defaults of built-in types. Most are constants in `defaults.json`, by the name of the type; the few that depend on
//! other fields are here.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::Schema;

static DEFAULTS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("defaults.json")).unwrap_or_default());

/// Sets the defaults that the original sets when it reads an object.
pub(crate) fn defaults(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(constants) = DEFAULTS.get(schema.short_name()).and_then(Value::as_object) {
                for (key, default) in constants {
                    if schema.field(key).is_some() && !map.contains_key(key) {
                        map.insert(key.clone(), default.clone());
                    }
                }
            }
            dependent(schema.short_name(), map);
            for (key, child) in map {
                if let Some(field) = schema.child(key) {
                    defaults(field, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(element) = schema.items() {
                for item in items {
                    defaults(element, item);
                }
            }
        }
        _ => {}
    }
}

fn absent(map: &mut Map<String, Value>, key: &str, default: impl FnOnce() -> Value) {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), default());
    }
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn dependent(type_name: &str, map: &mut Map<String, Value>) {
    workload(type_name, map);
    other(type_name, map);
}

fn workload(type_name: &str, map: &mut Map<String, Value>) {
    match type_name {
        "Container" | "EphemeralContainer" => {
            let policy = pull_policy(text(map, "image"));
            absent(map, "imagePullPolicy", || json!(policy));
        }
        "PodSpec" => {
            for (from, to) in [
                ("serviceAccountName", "serviceAccount"),
                ("serviceAccount", "serviceAccountName"),
            ] {
                if let Some(name) = map.get(from).cloned() {
                    absent(map, to, || name);
                }
            }
        }
        "Pod" => {
            if let Some(Value::Object(spec)) = map.get_mut("spec") {
                absent(spec, "enableServiceLinks", || json!(true));
                for list in ["containers", "initContainers"] {
                    let containers = spec
                        .get_mut(list)
                        .and_then(Value::as_array_mut)
                        .into_iter()
                        .flatten();
                    containers.filter_map(Value::as_object_mut).for_each(requests);
                }
            }
        }
        "DeploymentStrategy" if text(map, "type") == "RollingUpdate" => {
            absent(map, "rollingUpdate", || json!({}));
            if let Some(Value::Object(rolling)) = map.get_mut("rollingUpdate") {
                absent(rolling, "maxUnavailable", || json!("25%"));
                absent(rolling, "maxSurge", || json!("25%"));
            }
        }
        "StatefulSetUpdateStrategy" if text(map, "type") == "RollingUpdate" => {
            absent(map, "rollingUpdate", || json!({"partition": 0}));
        }
        "DaemonSetUpdateStrategy" if text(map, "type") == "RollingUpdate" => {
            absent(
                map,
                "rollingUpdate",
                || json!({"maxUnavailable": 1, "maxSurge": 0}),
            );
        }
        "StatefulSetSpec" => {
            for claim in map
                .get_mut("volumeClaimTemplates")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                claim["kind"] = json!("PersistentVolumeClaim");
                claim["apiVersion"] = json!("v1");
            }
        }
        // Not for the template in a CronJob.
        "Job" => {
            let Some(Value::Object(spec)) = map.get_mut("spec") else {
                return;
            };
            if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
                spec.insert("completions".to_owned(), json!(1));
            }
            for (key, value) in [
                ("parallelism", json!(1)),
                ("backoffLimit", json!(6)),
                ("completionMode", json!("NonIndexed")),
                ("suspend", json!(false)),
                ("manualSelector", json!(false)),
                ("podReplacementPolicy", json!("TerminatingOrFailed")),
            ] {
                absent(spec, key, || value);
            }
        }
        _ => {}
    }
}

fn other(type_name: &str, map: &mut Map<String, Value>) {
    match type_name {
        "ServicePort" => {
            if let Some(port) = map.get("port").cloned() {
                absent(map, "targetPort", || port);
            }
        }
        "ServiceSpec" => {
            if matches!(text(map, "type"), "ClusterIP" | "NodePort" | "LoadBalancer") {
                absent(map, "internalTrafficPolicy", || json!("Cluster"));
            }
            if matches!(text(map, "type"), "NodePort" | "LoadBalancer") {
                absent(map, "externalTrafficPolicy", || json!("Cluster"));
            }
            if text(map, "type") == "LoadBalancer" {
                absent(map, "allocateLoadBalancerNodePorts", || json!(true));
            }
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            if let Some(Value::Object(role)) = map.get_mut("roleRef") {
                absent(role, "apiGroup", || json!("rbac.authorization.k8s.io"));
            }
            for subject in map
                .get_mut("subjects")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if let Value::Object(subject) = subject
                    && matches!(text(subject, "kind"), "User" | "Group")
                {
                    absent(subject, "apiGroup", || json!("rbac.authorization.k8s.io"));
                }
            }
        }
        "NetworkPolicySpec" => {
            let egress = map.contains_key("egress");
            absent(map, "policyTypes", || {
                if egress {
                    json!(["Ingress", "Egress"])
                } else {
                    json!(["Ingress"])
                }
            });
        }
        "CustomResourceDefinitionSpec" => {
            if let Some(Value::Object(names)) = map.get_mut("names") {
                let kind = text(names, "kind").to_owned();
                if !kind.is_empty() {
                    absent(names, "singular", || json!(kind.to_lowercase()));
                    absent(names, "listKind", || json!(format!("{kind}List")));
                }
            }
        }
        _ => {}
    }
}

/// Limits are the default of requests.
fn requests(container: &mut Map<String, Value>) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    absent(resources, "requests", || json!({}));
    if let Some(Value::Object(requests)) = resources.get_mut("requests") {
        for (key, limit) in limits {
            absent(requests, &key, || limit);
        }
    }
}

/// Images without a tag, or with `latest`, are always pulled.
fn pull_policy(image: &str) -> &'static str {
    let name = image.split('@').next().unwrap_or_default();
    let tag = name
        .rsplit('/')
        .next()
        .and_then(|last| last.split_once(':'))
        .map(|(_, tag)| tag);
    match tag {
        None if image.contains('@') => "IfNotPresent",
        None | Some("latest") => "Always",
        Some(_) => "IfNotPresent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_real_types_and_fields() {
        let known: Vec<_> = crate::data::schemas()
            .keys()
            .filter_map(|name| Some((name.rsplit('.').next()?, Schema::named(name)?)))
            .collect();
        for (name, fields) in DEFAULTS.iter() {
            let fields: Vec<&String> = fields.as_object().unwrap().keys().collect();
            assert!(
                known
                    .iter()
                    .any(|(short, schema)| short == name && fields.iter().all(|f| schema.field(f).is_some())),
                "{name}"
            );
        }
    }

    #[test]
    fn images_decide_the_pull_policy() {
        for (image, policy) in [
            ("a", "Always"),
            ("a:latest", "Always"),
            ("a:1", "IfNotPresent"),
            ("host:5000/a", "Always"),
            ("host:5000/a:1", "IfNotPresent"),
            ("a@sha256:00", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
