//! Pods, workloads and Services.

use serde_json::{Value, json};

use super::super::age;
use super::{labels, list};
use crate::clock::Clock;
use crate::store::text;

/// The cell, if the kind is one of these and the column is special to it.
pub(super) fn cell(kind: &str, column: &str, object: &Value, clock: &Clock) -> Option<Value> {
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
        ("apps/daemonsets", "Node Selector") => {
            json!(labels(object.pointer("/spec/template/spec/nodeSelector")))
        }
        ("/services", "External-IP") => json!(outside(object)),
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
            } else if object.pointer("/spec/suspend") == Some(&json!(true)) {
                "Suspended"
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

/// The external address of a Service.
fn outside(service: &Value) -> String {
    let list = |pointer: &str, key: &str| -> Vec<String> {
        let items = list(service, pointer).into_iter();
        let names = items.filter_map(|item| {
            if key.is_empty() {
                item.as_str()
            } else {
                item.get(key)?.as_str()
            }
        });
        names.map(str::to_owned).collect()
    };
    let given = list("/spec/externalIPs", "");
    let found = match text(service, "/spec/type") {
        "ExternalName" => vec![text(service, "/spec/externalName").to_owned()],
        "LoadBalancer" => {
            let ingress = "/status/loadBalancer/ingress";
            let made = [list(ingress, "ip"), list(ingress, "hostname"), given].concat();
            if made.is_empty() {
                vec!["<pending>".to_owned()]
            } else {
                made
            }
        }
        _ => given,
    };
    if found.is_empty() {
        "<none>".to_owned()
    } else {
        found.join(",")
    }
}

/// The names or the images of a template's containers.
pub(super) fn containers(kind: &str, object: &Value, column: &str) -> String {
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

/// The status column of a pod.
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
