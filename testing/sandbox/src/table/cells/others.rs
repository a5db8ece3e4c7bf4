//! Nodes, claims, events, routes and all other kinds with special columns.

use serde_json::{Value, json};

use super::super::age;
use super::{labels, list};
use crate::clock::Clock;
use crate::store::text;

/// The cell, if the column is special to the kind.
#[allow(clippy::too_many_lines, reason = "one table: a row for each kind and column")]
pub(super) fn cell(kind: &str, column: &str, object: &Value, clock: &Clock) -> Option<Value> {
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
        ("storage.k8s.io/storageclasses", "AllowVolumeExpansion") => {
            json!(object.get("allowVolumeExpansion") == Some(&json!(true)))
        }
        ("discovery.k8s.io/endpointslices", "Ports") => {
            let ports: Vec<String> = list(object, "/ports")
                .iter()
                .filter_map(|port| Some(port.get("port")?.to_string()))
                .collect();
            json!(if ports.is_empty() {
                "<unset>".to_owned()
            } else {
                ports.join(",")
            })
        }
        ("discovery.k8s.io/endpointslices", "Endpoints") => {
            let addresses: Vec<&str> = list(object, "/endpoints")
                .into_iter()
                .flat_map(|endpoint| list(endpoint, "/addresses"))
                .filter_map(Value::as_str)
                .collect();
            json!(if addresses.is_empty() {
                "<unset>".to_owned()
            } else {
                addresses.join(",")
            })
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
