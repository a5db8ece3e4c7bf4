//! A healthy cluster, as a snapshot.

use std::sync::LazyLock;

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use crate::doctor::connect::{ConnectFailure, Contact, What};
use crate::doctor::snapshot::{Served, Snapshot};
use crate::{controllers, rbac};

pub(super) fn now() -> Timestamp {
    "2026-01-10T12:00:00Z".parse().unwrap()
}

pub(super) fn minutes_ago(minutes: i64) -> String {
    now().checked_sub(minutes.minutes()).unwrap().to_string()
}

/// A `caBundle` with CAs that are valid for so many days.
pub(super) fn bundle(days: &[i64]) -> String {
    use base64::Engine as _;
    let pem: Vec<String> = days
        .iter()
        .map(|days| authority(now().checked_add((24 * days).hours()).unwrap()))
        .collect();
    base64::engine::general_purpose::STANDARD.encode(pem.concat())
}

fn authority(until: Timestamp) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["ca".to_owned()]).unwrap();
    let date = until.to_zoned(jiff::tz::TimeZone::UTC);
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(
        i32::from(date.year()),
        u8::try_from(date.month()).unwrap(),
        u8::try_from(date.day()).unwrap(),
    );
    parameters.self_signed(&key).unwrap().pem()
}

pub(super) fn condition(kind: &str, state: &str, reason: &str, minutes: i64) -> Value {
    json!({ "type": kind, "status": state, "reason": reason, "message": "as it is", "lastTransitionTime": minutes_ago(minutes) })
}

pub(super) fn object(kind: &str, name: &str) -> Value {
    json!({
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "shop", "generation": 1, "creationTimestamp": minutes_ago(1000),
            "finalizers": ["example.com/finalizer"],
        },
        "spec": {},
        "status": {
            "observedGeneration": 1, "observed_generation": 1, "phase": "Ready",
            "conditions": [condition("Ready", "True", "Ready", 900), condition("Stalled", "False", "Ready", 900)],
            "dependencies": {
                "postgresql": { "connected": true, "latencyMs": 3 },
                "s3": { "connected": true, "latencyMs": 9 },
            },
        },
    })
}

pub(super) fn deployment(namespace: &str, arguments: &[&str]) -> Value {
    let arguments = [&["run", "--leader-elect"], arguments].concat();
    json!({
        "kind": "Deployment",
        "metadata": { "name": "stanchion", "namespace": namespace },
        "spec": { "replicas": 2, "template": { "spec": {
            "serviceAccountName": "stanchion",
            "containers": [{
                "name": "operator", "image": format!("example.com/stanchion:{}", env!("CARGO_PKG_VERSION")),
                "args": arguments,
            }],
        } } },
        "status": { "availableReplicas": 2 },
    })
}

/// A healthy cluster.
pub(super) fn healthy() -> Snapshot {
    static HEALTHY: LazyLock<Snapshot> = LazyLock::new(make_healthy);
    HEALTHY.clone()
}

fn make_healthy() -> Snapshot {
    let crds = stanchion_api::crds().into_iter().map(|crd| {
        let mut crd = serde_json::to_value(crd).unwrap();
        crd["status"] = json!({
            "storedVersions": ["v1alpha1"],
            "conditions": [
                { "type": "NamesAccepted", "status": "True" },
                { "type": "Established", "status": "True" },
            ],
        });
        crd
    });
    let webhook = |kind: &str| {
        json!({
            "kind": kind, "metadata": { "name": "stanchion-stanchion-system" },
            "webhooks": [{
                "failurePolicy": "Ignore",
                "clientConfig": {
                    "service": { "namespace": "stanchion-system", "name": "stanchion" },
                    // After a rotation: the previous CA, the current and the next.
                    "caBundle": bundle(&[5, 35, 65]),
                },
            }],
        })
    };
    let pod = json!({
        "kind": "Pod", "metadata": { "name": "stanchion-1", "namespace": "stanchion-system" },
        "status": { "containerStatuses": [{ "name": "operator", "image": "x", "restartCount": 0, "state": { "running": {} } }] },
    });
    let served = |group: &str, resource: &str| Served {
        group: group.to_owned(),
        resources: vec![resource.to_owned()],
    };
    let metrics = "workqueue_depth{controller=\"user\"} 2\ncontroller_runtime_reconcile_panics_total{controller=\"user\"} 0\n\
                   stanchion_api_requests_total{verb=\"get\",resource=\"secrets\",code=\"200\"} 9\n";
    Snapshot {
        now: now(),
        version: "v1.36.3".to_owned(),
        operator_namespace: None,
        crds: Ok(crds.collect()),
        objects: Ok(vec![
            object("PostgresUser", "alice"),
            object("SupabaseProject", "demo"),
            object("GitlabInstance", "git"),
        ]),
        namespaces: Ok(vec![
            json!({ "kind": "Namespace", "metadata": { "name": "shop" } }),
        ]),
        deployments: Ok(vec![deployment("stanchion-system", &[])]),
        pods: Ok(vec![pod]),
        leases: Ok(vec![json!({
            "kind": "Lease", "metadata": { "name": "stanchion", "namespace": "stanchion-system" },
            "spec": { "holderIdentity": "stanchion-1_x", "renewTime": now().to_string() },
        })]),
        services: Ok(vec![
            json!({ "kind": "Service", "metadata": { "name": "stanchion", "namespace": "stanchion-system" } }),
        ]),
        endpoint_slices: Ok(vec![json!({
            "metadata": { "namespace": "stanchion-system", "labels": { "kubernetes.io/service-name": "stanchion" } },
            "endpoints": [{ "conditions": { "ready": true } }],
        })]),
        webhooks: Ok(vec![
            webhook("ValidatingWebhookConfiguration"),
            webhook("MutatingWebhookConfiguration"),
        ]),
        certificates: Ok(vec![json!({
            "kind": "Certificate", "metadata": { "name": "stanchion", "namespace": "stanchion-system" },
            // It is being renewed.
            "status": { "notAfter": minutes_ago(-9000), "renewalTime": minutes_ago(1) },
        })]),
        rbac: Ok(rbac::cluster_wide(controllers::Choice::everything()).unwrap()),
        served: Ok(vec![
            served("helm.toolkit.fluxcd.io", "helmreleases"),
            served("source.toolkit.fluxcd.io", "helmrepositories"),
        ]),
        flux: Ok(vec![json!({
            "kind": "Deployment", "metadata": { "name": "helm-controller", "namespace": "flux-system" },
            "status": { "availableReplicas": 1 },
        })]),
        metrics: Ok(metrics.to_owned()),
        contacts: vec![contact(What::Database, Ok(())), contact(What::Bucket, Ok(()))],
    }
}

pub(super) fn contact(what: What, result: Result<(), ConnectFailure>) -> Contact {
    Contact {
        subject: "SupabaseProject shop/demo".to_owned(),
        namespace: "shop".to_owned(),
        what,
        result,
    }
}
