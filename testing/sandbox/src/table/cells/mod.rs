//! The cells of built-in kinds: a path for most, a small function for the rest.

mod limits;
mod others;
mod workloads;

use serde_json::{Value, json};

use super::age;
use crate::clock::Clock;
use crate::resource::Resource;
use crate::store::text;

/// Columns that show a field unchanged: kind, column, path.
const FIELDS: &[(&str, &str, &str)] = &[
    ("/events", "Type", "/type"),
    ("/events", "Reason", "/reason"),
    ("/events", "Message", "/message"),
    ("/namespaces", "Status", "/status/phase"),
    ("/secrets", "Type", "/type"),
    ("/services", "Type", "/spec/type"),
    ("/services", "Cluster-IP", "/spec/clusterIP"),
    ("/persistentvolumeclaims", "Status", "/status/phase"),
    ("/persistentvolumeclaims", "Volume", "/spec/volumeName"),
    ("/persistentvolumeclaims", "Capacity", "/status/capacity/storage"),
    (
        "/persistentvolumeclaims",
        "StorageClass",
        "/spec/storageClassName",
    ),
    ("/persistentvolumeclaims", "VolumeMode", "/spec/volumeMode"),
    ("/pods", "IP", "/status/podIP"),
    ("/pods", "Node", "/spec/nodeName"),
    ("/nodes", "Version", "/status/nodeInfo/kubeletVersion"),
    ("coordination.k8s.io/leases", "Holder", "/spec/holderIdentity"),
    ("batch/cronjobs", "Schedule", "/spec/schedule"),
    ("batch/cronjobs", "Timezone", "/spec/timeZone"),
    ("networking.k8s.io/ingresses", "Class", "/spec/ingressClassName"),
    (
        "networking.k8s.io/ingressclasses",
        "Controller",
        "/spec/controller",
    ),
    ("storage.k8s.io/storageclasses", "Provisioner", "/provisioner"),
    ("storage.k8s.io/storageclasses", "ReclaimPolicy", "/reclaimPolicy"),
    (
        "storage.k8s.io/storageclasses",
        "VolumeBindingMode",
        "/volumeBindingMode",
    ),
    (
        "scheduling.k8s.io/priorityclasses",
        "PreemptionPolicy",
        "/preemptionPolicy",
    ),
    ("discovery.k8s.io/endpointslices", "AddressType", "/addressType"),
];

/// Columns that show a number; zero if the field is missing.
const NUMBERS: &[(&str, &str, &str)] = &[
    ("apps/deployments", "Up-to-date", "/status/updatedReplicas"),
    ("apps/deployments", "Available", "/status/availableReplicas"),
    ("apps/replicasets", "Desired", "/spec/replicas"),
    ("apps/replicasets", "Current", "/status/replicas"),
    ("apps/replicasets", "Ready", "/status/readyReplicas"),
    ("apps/daemonsets", "Desired", "/status/desiredNumberScheduled"),
    ("apps/daemonsets", "Current", "/status/currentNumberScheduled"),
    ("apps/daemonsets", "Ready", "/status/numberReady"),
    ("apps/daemonsets", "Up-to-date", "/status/updatedNumberScheduled"),
    ("apps/daemonsets", "Available", "/status/numberAvailable"),
    ("scheduling.k8s.io/priorityclasses", "Value", "/value"),
    ("/events", "Count", "/count"),
    (
        "policy/poddisruptionbudgets",
        "Allowed Disruptions",
        "/status/disruptionsAllowed",
    ),
];

/// One cell; `<none>` where kubectl prints that, and empty for columns that the sandbox does not support.
pub(crate) fn cell(resource: &Resource, column: &Value, object: &Value, clock: &Clock) -> Value {
    let (kind, column) = (&*resource.storage, column.as_str().unwrap_or_default());
    let find = |table: &[(&str, &str, &'static str)]| {
        table
            .iter()
            .find(|(known, name, _)| *known == kind && *name == column)
            .map(|(_, _, pointer)| *pointer)
    };
    if let Some(pointer) = find(FIELDS) {
        let found = text(object, pointer);
        let empty = if matches!(
            kind,
            "/persistentvolumeclaims" | "/events" | "coordination.k8s.io/leases"
        ) {
            ""
        } else {
            "<none>"
        };
        return json!(if found.is_empty() { empty } else { found });
    }
    if let Some(pointer) = find(NUMBERS) {
        return json!(
            object
                .pointer(pointer)
                .and_then(Value::as_i64)
                .unwrap_or_default()
        );
    }
    match column {
        "Name" => json!(text(object, "/metadata/name")),
        "Age" => json!(age::since(text(object, "/metadata/creationTimestamp"), clock)),
        "Created At" => json!(text(object, "/metadata/creationTimestamp")),
        "Containers" | "Images" => json!(workloads::containers(kind, object, column)),
        "Selector" => json!(selector(object)),
        "Data" => {
            let size = |key: &str| {
                object
                    .get(key)
                    .and_then(Value::as_object)
                    .map_or(0, serde_json::Map::len)
            };
            json!(size("data") + size("binaryData"))
        }
        "Role" => json!(format!(
            "{}/{}",
            text(object, "/roleRef/kind"),
            text(object, "/roleRef/name")
        )),
        "Users" | "Groups" | "ServiceAccounts" => json!(subjects(object, column.trim_end_matches('s'))),
        "Webhooks" => json!(
            object
                .get("webhooks")
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        ),
        _ => special(kind, column, object, clock),
    }
}

fn special(kind: &str, column: &str, object: &Value, clock: &Clock) -> Value {
    workloads::cell(kind, column, object, clock)
        .or_else(|| others::cell(kind, column, object, clock))
        .or_else(|| limits::cell(kind, column, object))
        .unwrap_or_else(|| json!("<none>"))
}

fn list<'a>(object: &'a Value, pointer: &str) -> Vec<&'a Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect()
}

fn labels(map: Option<&Value>) -> String {
    let mut pairs: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    if pairs.is_empty() {
        "<none>".to_owned()
    } else {
        pairs.join(",")
    }
}

fn selector(object: &Value) -> String {
    labels(
        object
            .pointer("/spec/selector/matchLabels")
            .or_else(|| object.pointer("/spec/selector")),
    )
}

fn subjects(binding: &Value, kind: &str) -> String {
    let of_kind = list(binding, "/subjects")
        .into_iter()
        .filter(|subject| text(subject, "/kind") == kind);
    let names = of_kind.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
        _ => text(subject, "/name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}
