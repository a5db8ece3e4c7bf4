//! The cells of built-in kinds: a path for most, a small function for the rest.

use serde_json::{Value, json};

use super::age;
use crate::clock::Clock;
use crate::resource::Resource;
use crate::store::text;

/// Columns that show a field as it is: kind, column, where.
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

/// Columns that show a number; zero if the field is not there.
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

/// One cell; `<none>` where kubectl prints that, and nothing for columns that the sandbox does not fill.
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
        "Containers" | "Images" => json!(containers(kind, object, column)),
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
    workload(kind, column, object, clock)
        .or_else(|| other(kind, column, object, clock))
        .unwrap_or_else(|| json!("<none>"))
}

/// Pods, what makes them, and what leads to them.
fn workload(kind: &str, column: &str, object: &Value, clock: &Clock) -> Option<Value> {
    let number = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    Some(match (kind, column) {
        ("apps/deployments" | "apps/statefulsets", "Ready") => {
            json!(format!(
                "{}/{}",
                number("/status/readyReplicas"),
                number("/spec/replicas")
            ))
        }
        ("/pods", "Ready") => {
            let statuses: Vec<&Value> = list(object, "/status/containerStatuses");
            let ready = statuses
                .iter()
                .filter(|status| status.get("ready") == Some(&json!(true)))
                .count();
            json!(format!("{ready}/{}", list(object, "/spec/containers").len()))
        }
        ("/pods", "Status") => json!(pod_status(object)),
        ("/pods", "Restarts") => {
            let restarts: i64 = list(object, "/status/containerStatuses")
                .iter()
                .filter_map(|s| s.get("restartCount")?.as_i64())
                .sum();
            json!(restarts.to_string())
        }
        ("/services", "Port(s)") => {
            let ports: Vec<String> = list(object, "/spec/ports")
                .iter()
                .map(|port| {
                    let node = port
                        .get("nodePort")
                        .map(|node| format!(":{node}"))
                        .unwrap_or_default();
                    format!("{}{node}/{}", port["port"], text(port, "/protocol"))
                })
                .collect();
            json!(if ports.is_empty() {
                "<none>".to_owned()
            } else {
                ports.join(",")
            })
        }
        ("batch/jobs", "Status") => {
            let finished = |kind: &str| {
                list(object, "/status/conditions")
                    .iter()
                    .any(|c| text(c, "/type") == kind && text(c, "/status") == "True")
            };
            json!(if finished("Complete") {
                "Complete"
            } else if finished("Failed") {
                "Failed"
            } else {
                "Running"
            })
        }
        ("batch/jobs", "Completions") => json!(format!(
            "{}/{}",
            number("/status/succeeded"),
            number("/spec/completions")
        )),
        ("batch/jobs", "Duration") => json!(duration(object, clock)),
        _ => return None,
    })
}

fn other(kind: &str, column: &str, object: &Value, clock: &Clock) -> Option<Value> {
    Some(match (kind, column) {
        ("/nodes", "Status") => {
            let ready = list(object, "/status/conditions")
                .iter()
                .any(|c| text(c, "/type") == "Ready" && text(c, "/status") == "True");
            json!(if ready { "Ready" } else { "NotReady" })
        }
        ("/persistentvolumeclaims", "Access Modes") => {
            let short: Vec<&str> = list(object, "/status/accessModes")
                .iter()
                .map(|mode| match mode.as_str().unwrap_or_default() {
                    "ReadWriteOnce" => "RWO",
                    "ReadOnlyMany" => "ROX",
                    "ReadWriteMany" => "RWX",
                    _ => "RWOP",
                })
                .collect();
            json!(short.join(","))
        }
        ("/persistentvolumeclaims", "VolumeAttributesClass") => json!("<unset>"),
        ("/events", "Object") => {
            json!(format!(
                "{}/{}",
                text(object, "/involvedObject/kind").to_lowercase(),
                text(object, "/involvedObject/name")
            ))
        }
        ("/events", "Subobject") => json!(text(object, "/involvedObject/fieldPath")),
        ("/events", "Source") => {
            let component = text(object, "/source/component");
            json!(if component.is_empty() {
                text(object, "/reportingComponent")
            } else {
                component
            })
        }
        ("/events", "Last Seen" | "First Seen") => {
            let times = [
                if column == "Last Seen" {
                    "/series/lastObservedTime"
                } else {
                    "/firstTimestamp"
                },
                "/lastTimestamp",
                "/eventTime",
                "/firstTimestamp",
                "/metadata/creationTimestamp",
            ];
            let time = times
                .iter()
                .map(|pointer| text(object, pointer))
                .find(|time| !time.is_empty());
            json!(age::since(time.unwrap_or_default(), clock))
        }
        ("networking.k8s.io/ingresses", "Hosts") => {
            let hosts: Vec<&str> = list(object, "/spec/rules")
                .iter()
                .map(|rule| text(rule, "/host"))
                .filter(|host| !host.is_empty())
                .collect();
            json!(if hosts.is_empty() {
                "*".to_owned()
            } else {
                hosts.join(",")
            })
        }
        ("networking.k8s.io/ingresses", "Ports") => {
            json!(if list(object, "/spec/tls").is_empty() {
                "80"
            } else {
                "80, 443"
            })
        }
        ("networking.k8s.io/ingresses", _) => json!(""),
        ("networking.k8s.io/networkpolicies", "Pod-Selector") => {
            json!(labels(object.pointer("/spec/podSelector/matchLabels")))
        }
        ("scheduling.k8s.io/priorityclasses", "Global-Default") => {
            json!(object.get("globalDefault") == Some(&json!(true)))
        }
        ("batch/cronjobs", "Suspend") => json!(if object.pointer("/spec/suspend") == Some(&json!(true)) {
            "True"
        } else {
            "False"
        }),
        ("batch/cronjobs", "Active") => json!(list(object, "/status/active").len()),
        _ => return None,
    })
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

fn containers(kind: &str, object: &Value, column: &str) -> String {
    let pointer = match kind {
        "batch/cronjobs" => "/spec/jobTemplate/spec/template/spec/containers",
        _ => "/spec/template/spec/containers",
    };
    let key = if column == "Images" { "/image" } else { "/name" };
    list(object, pointer)
        .iter()
        .map(|container| text(container, key))
        .collect::<Vec<_>>()
        .join(",")
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

/// The word for how a pod fares.
fn pod_status(pod: &Value) -> String {
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        return "Terminating".to_owned();
    }
    let statuses = list(pod, "/status/containerStatuses");
    let reason = statuses.iter().find_map(|status| {
        ["/state/waiting/reason", "/state/terminated/reason"]
            .iter()
            .map(|pointer| text(status, pointer))
            .find(|reason| !reason.is_empty())
    });
    reason.unwrap_or_else(|| text(pod, "/status/phase")).to_owned()
}

fn duration(job: &Value, clock: &Clock) -> String {
    let second = |pointer: &str| {
        text(job, pointer)
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_second)
    };
    match (second("/status/startTime"), second("/status/completionTime")) {
        (Some(start), end) => age::human(end.unwrap_or_else(|| clock.now().as_second()) - start),
        (None, _) => String::new(),
    }
}
