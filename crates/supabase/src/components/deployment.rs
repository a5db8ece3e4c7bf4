//! The Deployment of a component: everything that is independent of the component.
//!
//! Pods satisfy the Pod Security Standard `restricted`, mount no token, and are replaced when a file or a value of a
//! Secret changes that they would not notice otherwise.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use stanchion_api::supabase::Options;

use super::environment::Environment;
use super::project::{CA_FOLDER, CA_VOLUME};
use super::{Component, Extras, Needed, Project, Resources};
use crate::put;

/// Replaces pods when one of their files, or a value of a `ConfigMap`, changes.
const CONFIG_HASH: &str = "supabase.strrl.dev/config-hash";
/// Replaces pods when one of their Secrets changes.
const SECRET_HASH: &str = "supabase.strrl.dev/secret-hash";

pub(crate) fn deployment(component: &Component, options: &Options, project: &Project<'_>) -> Value {
    let labels = component.labels(project.name);
    let (annotations, pod) = pod(component, options, project);
    let mut spec = json!({
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels, "annotations": annotations }, "spec": pod },
    });
    if options.autoscaling.is_none() {
        put(&mut spec, "replicas", options.replicas);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": component.child_name(project.name), "labels": labels },
        "spec": spec,
    })
}

fn pod(component: &Component, options: &Options, project: &Project<'_>) -> (Value, Value) {
    let extras = (component.extras)(project);
    let mut environment = Environment::default();
    (component.environment)(project, &mut environment);
    for variable in &options.extra_env {
        environment.put(variable.clone());
    }
    let needs = (component.needs)(project.spec);
    let mut used = environment.secrets();
    used.extend(needs.secrets.iter().flat_map(each_key));
    let (volumes, mounts) = volumes(project, &extras, &mut used);
    let mut shown = environment.config_maps();
    shown.extend(needs.config_maps.iter().flat_map(|map| {
        let keys = project.config.get(&map.name).into_iter().flatten();
        keys.map(|(key, _)| (map.name.clone(), key.clone()))
    }));
    let annotations = annotations(options, project, &extras, &Taken { used, shown });
    let mut container = json!({
        "name": component.name,
        "image": options.image.as_deref().unwrap_or(component.image),
        "ports": component.ports.iter()
            .map(|port| json!({ "name": port.name, "containerPort": port.number, "protocol": "TCP" }))
            .collect::<Vec<_>>(),
        "env": environment.variables(),
        "resources": options.resources.as_ref().map_or_else(|| resources(&component.resources), plain),
        "securityContext": over(
            json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } }),
            options.security_context.as_ref().map(plain),
        ),
    });
    for (name, probe) in (component.probes)(project).fields() {
        put(&mut container, name, probe);
    }
    if !extras.command.is_empty() {
        put(&mut container, "command", extras.command);
    }
    if !mounts.is_empty() {
        put(&mut container, "volumeMounts", mounts);
    }
    let mut pod = json!({
        "containers": [container],
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": over(
            json!({
                "runAsNonRoot": true,
                "runAsUser": component.user,
                "seccompProfile": { "type": "RuntimeDefault" },
            }),
            options.pod_security_context.as_ref().map(plain),
        ),
    });
    if !volumes.is_empty() {
        put(&mut pod, "volumes", volumes);
    }
    schedule(&mut pod, options, component, project);
    (annotations, pod)
}

/// The Secret and `ConfigMap` keys that a pod uses.
struct Taken {
    /// From Secrets.
    used: Vec<(String, String)>,
    /// From `ConfigMaps`.
    shown: Vec<(String, String)>,
}

fn each_key(needed: &Needed) -> impl Iterator<Item = (String, String)> {
    let name = needed.name.clone();
    needed
        .keys
        .iter()
        .map(move |key| (name.clone(), (*key).to_owned()))
}

/// The placement of the pods, and their `ServiceAccount`. Unset fields are not written, so that another field manager
/// can own them.
fn schedule(pod: &mut Value, options: &Options, component: &Component, project: &Project<'_>) {
    let mut spread: Vec<Value> = options.topology_spread_constraints.iter().map(plain).collect();
    for constraint in &mut spread {
        if constraint.get("labelSelector").is_none() {
            let own = json!({ "matchLabels": component.labels(project.name) });
            put(constraint, "labelSelector", own);
        }
    }
    let fields = [
        ("nodeSelector", plain(&options.node_selector)),
        ("tolerations", plain(&options.tolerations)),
        ("affinity", plain(&options.affinity)),
        ("topologySpreadConstraints", spread.into()),
        ("imagePullSecrets", plain(&options.image_pull_secrets)),
        ("serviceAccountName", plain(&options.service_account_name)),
        // The deprecated alias, which the API server fills in: otherwise it would restore a removed name.
        ("serviceAccount", plain(&options.service_account_name)),
    ];
    for (name, value) in fields {
        let empty = match &value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if !empty {
            put(pod, name, value);
        }
    }
}

fn annotations(options: &Options, project: &Project<'_>, extras: &Extras, taken: &Taken) -> Value {
    let mut all: Map<String, Value> = options
        .pod_annotations
        .iter()
        .map(|(name, value)| (name.clone(), Value::String(value.clone())))
        .collect();
    let files = extras.files.iter().flat_map(|files| &files.data);
    let files = files.map(|(name, text)| ((*name).to_owned(), text.as_str()));
    let values = taken.shown.iter().map(|(map, key)| {
        let value = project.config.get(map).and_then(|values| values.get(key));
        (format!("{map}/{key}"), value.map_or("", String::as_str))
    });
    let configuration: Vec<(String, &str)> = files.chain(values).collect();
    if !configuration.is_empty() {
        let mut digest = Sha256::new();
        for (name, text) in configuration {
            digest.update(format!("{}:{name}{}:{text}", name.len(), text.len()));
        }
        let hash = crate::keys::hex_text(digest.finalize().get(..16).unwrap_or_default());
        all.insert(CONFIG_HASH.into(), hash.into());
    }
    if !taken.used.is_empty() {
        all.insert(SECRET_HASH.into(), project.secrets.mark(&taken.used).into());
    }
    all.into()
}

/// The files, the writable directories, the database's authority, and other mounts.
fn volumes(
    project: &Project<'_>,
    extras: &Extras,
    used: &mut Vec<(String, String)>,
) -> (Vec<Value>, Vec<Value>) {
    let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
    if let Some(files) = &extras.files {
        let map = format!("{}-{}", project.name, files.suffix);
        volumes.push(json!({ "name": files.suffix, "configMap": { "name": map } }));
        mounts.push(json!({ "name": files.suffix, "mountPath": files.path, "readOnly": true }));
    }
    for (index, path) in extras.scratch.iter().enumerate() {
        let name = format!("scratch-{index}");
        volumes.push(json!({ "name": name, "emptyDir": {} }));
        mounts.push(json!({ "name": name, "mountPath": path }));
    }
    // Only a component that connects to the database has a password for it.
    let speaks = used.iter().any(|(_, key)| key.starts_with("database-password-"));
    if let Some(ca) = project.spec.database.ca_secret_ref.as_ref().filter(|_| speaks) {
        let item = json!({ "key": ca.key, "path": ca.key });
        volumes.push(json!({ "name": CA_VOLUME, "secret": { "secretName": ca.name, "items": [item] } }));
        mounts.push(json!({ "name": CA_VOLUME, "mountPath": CA_FOLDER, "readOnly": true }));
        used.push((ca.name.clone(), ca.key.clone()));
    }
    for mount in &extras.mounts {
        if let Some(volume) = &mount.volume {
            volumes.push(over(json!({ "name": mount.name }), Some(volume.clone())));
        }
        let mut seen = json!({ "name": mount.name, "mountPath": mount.path, "readOnly": true });
        if let Some(file) = &mount.file {
            put(&mut seen, "subPath", file.as_str());
        }
        mounts.push(seen);
    }
    (volumes, mounts)
}

fn resources(resources: &Resources) -> Value {
    let pair = |(cache, cpu): (&str, &str)| json!({ "memory": cache, "cpu": cpu });
    json!({ "requests": pair(resources.requests), "limits": pair(resources.limits) })
}

/// Merges the user's value over the default.
fn over(mut ours: Value, theirs: Option<Value>) -> Value {
    if let (Some(ours), Some(Value::Object(theirs))) = (ours.as_object_mut(), theirs) {
        ours.extend(theirs);
    }
    ours
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A Service in the cluster with the component's ports.
pub(crate) fn service(component: &Component, project: &Project<'_>) -> Value {
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
