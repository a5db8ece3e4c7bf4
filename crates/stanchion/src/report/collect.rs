//! Reads what a maintainer needs, and redacts the rest.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, LogParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ReportError, redact};
use crate::cluster::{Cluster, Unreadable, items, printable, text};
use crate::{doctor, status};

/// Maximum size of one log.
const LOG_BYTES: i64 = 4 << 20;

/// The files of the report.
pub(super) async fn collect(
    cluster: &Cluster,
    operator_namespace: Option<&str>,
    log_lines: u32,
) -> Result<Vec<(String, Vec<u8>)>, ReportError> {
    let now = Timestamp::now();
    let snapshot = Box::pin(doctor::look(cluster, operator_namespace, None)).await?;
    let mut files = Vec::new();
    let mut unreadable: Vec<(String, String)> = Vec::new();
    let program = json!({
        "program": env!("CARGO_PKG_VERSION"), "kubernetes": snapshot.version, "made": now.to_string(),
    });
    add(&mut files, "versions.json", &program)?;
    add(
        &mut files,
        "doctor.json",
        &redacted(&doctor::diagnose(&snapshot))?,
    )?;
    let overview = status::overview(cluster, None, now).await;
    add(&mut files, "status.json", &redacted(&overview)?)?;
    let parts = [
        ("objects", &snapshot.objects),
        ("crds", &snapshot.crds),
        ("operator/deployments", &snapshot.deployments),
        ("operator/pods", &snapshot.pods),
        ("operator/leases", &snapshot.leases),
        ("operator/webhooks", &snapshot.webhooks),
        ("flux", &snapshot.flux),
    ];
    for (name, part) in parts {
        match part {
            Ok(objects) => {
                // Schemas are part of the program, and large.
                let brief = |object: &Value| {
                    if name == "crds" {
                        crd(object)
                    } else {
                        redact::object(object)
                    }
                };
                let shown: Vec<Value> = objects.iter().map(brief).collect();
                add(&mut files, &format!("{name}.json"), &shown)?;
            }
            Err(why) => unreadable.push((name.to_owned(), why.words())),
        }
    }
    let operators = operators(snapshot.deployments.as_deref().unwrap_or_default());
    let (events, unread) = events(cluster, &operators).await;
    add(&mut files, "events.json", &events)?;
    unreadable.extend(unread);
    if let Ok(text) = &snapshot.metrics {
        let text = redact::text(text);
        files.push(("operator/metrics.txt".to_owned(), text.into_bytes()));
    }
    for pod in snapshot.pods.iter().flatten() {
        for (name, log) in logs(cluster, pod, log_lines).await {
            match log {
                Ok(text) => files.push((format!("operator/logs/{name}.log"), text.into_bytes())),
                Err(why) => unreadable.push((format!("log of {name}"), why.words())),
            }
        }
    }
    add(&mut files, "unreadable.json", &redacted(&unreadable)?)?;
    Ok(files)
}

fn add(
    files: &mut Vec<(String, Vec<u8>)>,
    name: &str,
    value: &impl Serialize,
) -> Result<(), serde_json::Error> {
    files.push((name.to_owned(), serde_json::to_vec_pretty(value)?));
    Ok(())
}

/// The program's own output, which repeats messages of the operator.
fn redacted(value: &impl Serialize) -> Result<Value, serde_json::Error> {
    Ok(redact::words(&serde_json::to_value(value)?))
}

/// A CRD without its schema.
fn crd(object: &Value) -> Value {
    json!({
        "name": object.pointer("/metadata/name"),
        "versions": object.pointer("/spec/versions").and_then(Value::as_array).map(|versions| {
            versions.iter().map(|version| version["name"].clone()).collect::<Vec<_>>()
        }),
        "status": object.get("status"),
    })
}

/// Namespace and name of the operator's Deployments.
type Operators<'a> = BTreeSet<(&'a str, &'a str)>;

fn operators(deployments: &[Value]) -> Operators<'_> {
    let names = deployments.iter().map(|deployment| {
        (
            text(deployment, "/metadata/namespace"),
            text(deployment, "/metadata/name"),
        )
    });
    names.collect()
}

/// The events about our objects, and about everything that belongs to a Deployment of the operator, in its namespace:
/// what the scheduler, the kubelet or a quota says about an operator that does not start.
async fn events(cluster: &Cluster, operators: &Operators<'_>) -> (Vec<Value>, Vec<(String, String)>) {
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"), "events");
    let mut namespaces: BTreeSet<Option<&str>> = BTreeSet::from([cluster.namespace.as_deref()]);
    // Without a namespace, the first list has those of all.
    if cluster.namespace.is_some() {
        namespaces.extend(operators.iter().map(|(namespace, _)| Some(*namespace)));
    }
    let (mut events, mut unreadable) = (Vec::new(), Vec::new());
    for namespace in namespaces {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
            None => Api::all_with(cluster.client.clone(), &resource),
        };
        match cluster.list(&api).await {
            Ok(list) => events.extend(list),
            Err(why) => unreadable.push((
                format!("events in {}", namespace.unwrap_or("all namespaces")),
                why.words(),
            )),
        }
    }
    let kinds: Vec<String> = stanchion_api::crds()
        .into_iter()
        .map(|crd| crd.spec.names.kind)
        .collect();
    let is_shown = |event: &&Value| {
        let of = text(event, "/regarding/kind");
        kinds.iter().any(|kind| kind == of) || is_of_operator(event, operators)
    };
    let shown = events.iter().filter(is_shown).map(redact::object).collect();
    (shown, unreadable)
}

/// Whether an event is about a Deployment of the operator, or about a `ReplicaSet` or a pod of it, which may be gone.
fn is_of_operator(event: &Value, operators: &Operators<'_>) -> bool {
    let (kind, name) = (text(event, "/regarding/kind"), text(event, "/regarding/name"));
    let namespace = text(event, "/metadata/namespace");
    operators.iter().any(|(place, deployment)| {
        let rest = name.strip_prefix(deployment);
        *place == namespace
            && match kind {
                "Deployment" => rest == Some(""),
                "ReplicaSet" | "Pod" => rest.is_some_and(|rest| rest.starts_with('-')),
                _ => false,
            }
    })
}

/// The log of a pod of the operator; if its container has restarted, also the log of the run before, which says why.
async fn logs(cluster: &Cluster, pod: &Value, lines: u32) -> Vec<(String, Result<String, Unreadable>)> {
    let restarted = items(pod, "/status/containerStatuses")
        .any(|container| container["restartCount"].as_i64().unwrap_or_default() > 0);
    // A mesh may have added a container of its own. Then the API server needs to know which one.
    let container = items(pod, "/spec/containers")
        .any(|container| container["name"] == "operator")
        .then(|| "operator".to_owned());
    let name = text(pod, "/metadata/name");
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), text(pod, "/metadata/namespace"));
    let mut found = Vec::new();
    for previous in [false, true] {
        if previous && !restarted {
            continue;
        }
        let parameters = LogParams {
            container: container.clone(),
            previous,
            tail_lines: Some(i64::from(lines)),
            limit_bytes: Some(LOG_BYTES),
            timestamps: true,
            ..LogParams::default()
        };
        let log = cluster.ask(pods.logs(name, &parameters)).await;
        let ending = if previous { ".previous" } else { "" };
        found.push((
            format!("{}{ending}", printable(name)),
            log.map(|text| redact::text(&text)),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_answers;

    #[tokio::test]
    async fn the_events_of_an_operator_that_does_not_start_are_in_the_report() {
        let event = |namespace: &str, kind: &str, name: &str, note: &str| {
            json!({
                "metadata": { "namespace": namespace, "name": note }, "regarding": { "kind": kind, "name": name },
                "note": note, "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
            })
        };
        let list = |events: &[Value]| json!({ "metadata": {}, "items": events }).to_string();
        let shop = list(&[
            event("shop", "PostgresUser", "alice", "ours"),
            event("shop", "Pod", "stanchion-1", "of a namesake"),
        ]);
        let ops = list(&[
            event("ops", "Deployment", "stanchion", "scaled"),
            event("ops", "ReplicaSet", "stanchion-7c9", "forbidden by the quota"),
            event("ops", "Pod", "stanchion-7c9-x1", "back-off restarting"),
            event("ops", "Pod", "stanchionette", "of somebody else"),
            event("ops", "Pod", "database-0", "of somebody else"),
        ]);
        let mut cluster = fixed_answers::cluster(&[
            ("/apis/events.k8s.io/v1/namespaces/shop/events?&limit=500", &shop),
            ("/apis/events.k8s.io/v1/namespaces/ops/events?&limit=500", &ops),
        ])
        .await;
        cluster.namespace = Some("shop".to_owned());
        let deployment = json!({ "metadata": { "namespace": "ops", "name": "stanchion" } });
        let deployments = [deployment];
        let (shown, unreadable) = events(&cluster, &operators(&deployments)).await;
        assert_eq!(unreadable, []);
        let notes: Vec<&str> = shown.iter().map(|event| text(event, "/note")).collect();
        assert_eq!(
            notes,
            ["scaled", "forbidden by the quota", "back-off restarting", "ours"]
        );
        assert_eq!(
            text(&shown[0], "/deprecatedLastTimestamp"),
            "2026-01-01T00:00:00Z"
        );

        // One namespace that may not be read does not hide the other.
        cluster.namespace = Some("elsewhere".to_owned());
        let (shown, unreadable) = events(&cluster, &operators(&deployments)).await;
        assert_eq!(shown.len(), 3);
        assert_eq!(unreadable[0].0, "events in elsewhere");
    }

    #[tokio::test]
    async fn a_pod_that_has_restarted_also_has_the_log_of_the_run_before() {
        let path = "/api/v1/namespaces/ops/pods/stanchion-1/log?";
        let rest = "container=operator&limitBytes=4194304";
        let now = format!("{path}&{rest}&tailLines=9&timestamps=true");
        let before = format!("{path}&{rest}&previous=true&tailLines=9&timestamps=true");
        let cluster = fixed_answers::cluster(&[(&now, "starting"), (&before, "panicked")]).await;
        let pod = |restarts: i64| {
            json!({
                "metadata": { "namespace": "ops", "name": "stanchion-1" },
                "spec": { "containers": [{ "name": "mesh" }, { "name": "operator" }] },
                "status": { "containerStatuses": [{ "restartCount": restarts }] },
            })
        };
        let once = logs(&cluster, &pod(0), 9).await;
        assert_eq!(once, [("stanchion-1".to_owned(), Ok("starting".to_owned()))]);
        let again = logs(&cluster, &pod(3), 9).await;
        let expected = ("stanchion-1.previous".to_owned(), Ok("panicked".to_owned()));
        assert_eq!(again.last(), Some(&expected));
        assert_eq!(again.len(), 2);
    }
}
