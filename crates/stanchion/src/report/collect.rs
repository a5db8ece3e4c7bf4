//! Reads what a maintainer needs, and redacts the rest.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, LogParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ReportError, redact};
use crate::cluster::{Cluster, Unreadable, printable};
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
    match events(cluster).await {
        Ok(events) => add(&mut files, "events.json", &events)?,
        Err(why) => unreadable.push(("events".to_owned(), why.words())),
    }
    if let Ok(text) = &snapshot.metrics {
        files.push(("operator/metrics.txt".to_owned(), text.clone().into_bytes()));
    }
    for pod in snapshot.pods.iter().flatten() {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        match log(cluster, namespace, name, log_lines).await {
            Ok(log) => files.push((format!("operator/logs/{}.log", printable(name)), log.into_bytes())),
            Err(why) => unreadable.push((format!("log of {name}"), why.words())),
        }
    }
    add(&mut files, "unreadable.json", &unreadable)?;
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

/// The events about our objects and our pods.
async fn events(cluster: &Cluster) -> Result<Vec<Value>, Unreadable> {
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"), "events");
    let api: Api<DynamicObject> = cluster.api(&resource);
    let kinds: Vec<String> = stanchion_api::crds()
        .into_iter()
        .map(|crd| crd.spec.names.kind)
        .collect();
    let events = cluster.list(&api).await?;
    let ours = events.iter().filter(|event| {
        let of = event
            .pointer("/regarding/kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        kinds.iter().any(|kind| kind == of)
    });
    Ok(ours.map(redact::object).collect())
}

async fn log(cluster: &Cluster, namespace: &str, pod: &str, lines: u32) -> Result<String, Unreadable> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let parameters = LogParams {
        tail_lines: Some(i64::from(lines)),
        limit_bytes: Some(LOG_BYTES),
        timestamps: true,
        ..LogParams::default()
    };
    let text = cluster.ask(pods.logs(pod, &parameters)).await?;
    Ok(redact::text(&text))
}
