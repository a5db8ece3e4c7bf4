//! Plants every fault into a healthy snapshot and finds it under its own id; the healthy snapshot has no findings.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::connect::{Contact, Obstacle, What};
use super::snapshot::{Served, Snapshot};
use super::{ALL, Finding, diagnose, render};
use crate::cluster::Unreadable;
use crate::{controllers, rbac, status};

fn now() -> Timestamp {
    "2026-01-10T12:00:00Z".parse().unwrap()
}

fn minutes_ago(minutes: i64) -> String {
    now().checked_sub(minutes.minutes()).unwrap().to_string()
}

/// A `caBundle` that is valid until then.
fn bundle(until: Timestamp) -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["ca".to_owned()]).unwrap();
    let date = until.to_zoned(jiff::tz::TimeZone::UTC);
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(
        i32::from(date.year()),
        u8::try_from(date.month()).unwrap(),
        u8::try_from(date.day()).unwrap(),
    );
    let pem = parameters.self_signed(&key).unwrap().pem();
    base64::engine::general_purpose::STANDARD.encode(pem)
}

fn condition(kind: &str, state: &str, reason: &str, minutes: i64) -> Value {
    json!({ "type": kind, "status": state, "reason": reason, "message": "as it is", "lastTransitionTime": minutes_ago(minutes) })
}

fn object(kind: &str, name: &str) -> Value {
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

fn deployment(namespace: &str, arguments: &[&str]) -> Value {
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
fn healthy() -> Snapshot {
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
                    "caBundle": bundle(now().checked_add((24 * 300).hours()).unwrap()),
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

fn contact(what: What, result: Result<(), Obstacle>) -> Contact {
    Contact {
        subject: "SupabaseProject shop/demo".to_owned(),
        namespace: "shop".to_owned(),
        what,
        result,
    }
}

/// A fault: its id, and how it is planted.
type Plant = (&'static str, fn(&mut Snapshot));

fn first(list: &mut super::snapshot::Read<Vec<Value>>) -> &mut Value {
    list.as_mut().unwrap().first_mut().unwrap()
}

/// The object of this name.
fn of<'a>(snapshot: &'a mut Snapshot, name: &str) -> &'a mut Value {
    let objects = snapshot.objects.as_mut().unwrap();
    objects
        .iter_mut()
        .find(|object| object["metadata"]["name"] == name)
        .unwrap()
}

fn push(snapshot: &mut Snapshot, object: Value) {
    snapshot.objects.as_mut().unwrap().push(object);
}

const FAULTS: &[Plant] = &[
    ("kubernetes-too-old", |cluster| {
        cluster.version = "v1.31.2".to_owned();
    }),
    ("crd-missing", |cluster| {
        drop(cluster.crds.as_mut().unwrap().remove(0));
    }),
    ("crd-not-established", |cluster| {
        first(&mut cluster.crds)["status"]["conditions"] = json!([{ "type": "NamesAccepted", "status": "False", "message": "postgresusers is already in use" }]);
    }),
    ("crd-outdated", |cluster| {
        let schema = first(&mut cluster.crds)
            .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties");
        schema.unwrap().as_object_mut().unwrap().remove("privileges");
    }),
    ("crd-stored-version", |cluster| {
        first(&mut cluster.crds)["status"]["storedVersions"] = json!(["v1alpha1", "v1alpha0"]);
    }),
    ("operator-missing", |cluster| {
        cluster.deployments = Ok(Vec::new());
        cluster.webhooks = Ok(Vec::new());
    }),
    ("operator-unavailable", |cluster| {
        first(&mut cluster.deployments)["status"] = json!({});
    }),
    ("operator-unavailable", |cluster| {
        first(&mut cluster.deployments)["spec"]["replicas"] = json!(0);
    }),
    ("operator-degraded", |cluster| {
        first(&mut cluster.deployments)["status"]["availableReplicas"] = json!(1);
    }),
    ("operator-overlap", |cluster| {
        let other = deployment(
            "stanchion-system",
            &["--namespace=shop", "--controllers=user", "--no-webhooks"],
        );
        cluster.deployments.as_mut().unwrap().push(other);
    }),
    ("operator-image", |cluster| {
        first(&mut cluster.pods)["status"]["containerStatuses"][0]["state"] =
            json!({ "waiting": { "reason": "ImagePullBackOff", "message": "not found" } });
    }),
    ("operator-crashes", |cluster| {
        first(&mut cluster.pods)["status"]["containerStatuses"][0]["state"] =
            json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    }),
    ("operator-out-of-memory", |cluster| {
        first(&mut cluster.pods)["status"]["containerStatuses"][0]["lastState"] =
            json!({ "terminated": { "reason": "OOMKilled" } });
    }),
    ("operator-version", |cluster| {
        first(&mut cluster.deployments)["spec"]["template"]["spec"]["containers"][0]["image"] =
            json!("stanchion:v0.0.1");
    }),
    ("operator-namespace", |cluster| {
        let narrow = deployment("stanchion-system", &["--namespace", "shop", "--namespace=gone"]);
        cluster.deployments = Ok(vec![narrow]);
    }),
    ("lease-missing", |cluster| cluster.leases = Ok(Vec::new())),
    ("lease-expired", |cluster| {
        first(&mut cluster.leases)["spec"]["renewTime"] = json!(minutes_ago(9));
    }),
    ("lease-expired", |cluster| {
        first(&mut cluster.leases)["spec"]["holderIdentity"] = json!("");
    }),
    ("rbac-missing", |cluster| {
        let objects = cluster.rbac.as_mut().unwrap();
        let role = objects
            .iter_mut()
            .find(|object| object["kind"] == "ClusterRole")
            .unwrap();
        role["rules"].as_array_mut().unwrap().remove(0);
    }),
    ("rbac-wildcard", |cluster| {
        let objects = cluster.rbac.as_mut().unwrap();
        let role = objects
            .iter_mut()
            .find(|object| object["kind"] == "ClusterRole")
            .unwrap();
        role["rules"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }));
    }),
    ("webhook-missing", |cluster| cluster.webhooks = Ok(Vec::new())),
    ("webhook-left-behind", |cluster| {
        first(&mut cluster.webhooks)["metadata"]["name"] = json!("stanchion-elsewhere");
    }),
    ("webhook-service", |cluster| cluster.services = Ok(Vec::new())),
    ("webhook-service", |cluster| {
        cluster.endpoint_slices = Ok(Vec::new());
    }),
    ("webhook-blocks", |cluster| {
        first(&mut cluster.webhooks)["webhooks"][0]["failurePolicy"] = json!("Fail");
    }),
    ("certificate-expired", |cluster| {
        let bundle = bundle(now().checked_sub((24 * 3).hours()).unwrap());
        first(&mut cluster.webhooks)["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle);
    }),
    ("certificate-expires", |cluster| {
        let bundle = bundle(now().checked_add((24 * 3).hours()).unwrap());
        first(&mut cluster.webhooks)["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle);
    }),
    ("object-failed", |cluster| {
        of(cluster, "alice")["status"]["conditions"] = json!([
            condition("Ready", "False", "RoleConflict", 30),
            condition("Stalled", "True", "RoleConflict", 30)
        ]);
    }),
    ("object-not-ready", |cluster| {
        of(cluster, "demo")["status"]["conditions"] = json!([condition("Ready", "False", "Deploying", 30)]);
    }),
    ("object-ignored", |cluster| {
        of(cluster, "alice")["status"] = json!({});
    }),
    ("object-ignored", |cluster| {
        of(cluster, "alice")["metadata"]["generation"] = json!(2);
    }),
    ("object-unwatched", |cluster| {
        cluster.deployments = Ok(vec![deployment(
            "stanchion-system",
            &["--controllers=user,supabase"],
        )]);
    }),
    ("finalizer-stuck", |cluster| {
        of(cluster, "alice")["metadata"]["deletionTimestamp"] = json!(minutes_ago(30));
    }),
    ("object-drifted", |cluster| {
        let conditions = of(cluster, "alice")["status"]["conditions"]
            .as_array_mut()
            .unwrap();
        conditions.push(condition("Drifted", "True", "DriftDetected", 30));
    }),
    ("plan-waits", |cluster| {
        let mut plan = object("PostgresPolicyPlan", "p-1");
        plan["status"] = json!({ "phase": "Pending", "computedAt": minutes_ago(3000) });
        push(cluster, plan);
    }),
    ("object-suspended", |cluster| {
        of(cluster, "alice")["spec"]["suspend"] = json!(true);
    }),
    ("database-unreachable", |cluster| {
        let conditions = of(cluster, "alice")["status"]["conditions"]
            .as_array_mut()
            .unwrap();
        conditions.push(condition("DatabaseConnected", "False", "ConnectionFailed", 3));
    }),
    ("database-unreachable", |cluster| {
        of(cluster, "demo")["status"]["dependencies"]["postgresql"] =
            json!({ "connected": false, "error": "refused" });
    }),
    ("bucket-unreachable", |cluster| {
        of(cluster, "demo")["status"]["dependencies"]["s3"] =
            json!({ "connected": false, "error": "refused" });
    }),
    ("dependency-slow", |cluster| {
        of(cluster, "demo")["status"]["dependencies"]["s3"]["latencyMs"] = json!(4000);
    }),
    ("connect-database", |cluster| {
        let why = Obstacle::Failed("ConnectionRefused: nothing listens there".to_owned());
        cluster.contacts = vec![contact(What::Database, Err(why))];
    }),
    ("connect-bucket", |cluster| {
        let why = Obstacle::Failed("HostNotFound: no DNS knows the name".to_owned());
        cluster.contacts = vec![contact(What::Bucket, Err(why))];
    }),
    ("connect-secret", |cluster| {
        let why = Obstacle::Unread("Secret db: you have no right to read it".to_owned());
        cluster.contacts = vec![contact(What::Database, Err(why))];
    }),
    ("flux-missing", |cluster| cluster.served = Ok(Vec::new())),
    ("flux-unavailable", |cluster| {
        first(&mut cluster.flux)["status"] = json!({});
    }),
    ("backend-operator-missing", |cluster| {
        let mut ready = condition("Ready", "False", "KindMissing", 3);
        ready["message"] = json!("the cluster does not serve perconapgclusters.pgv2.percona.com");
        of(cluster, "git")["status"]["conditions"] = json!([ready]);
    }),
    ("queue-grows", |cluster| {
        cluster.metrics = Ok("workqueue_depth{controller=\"user\"} 250\n".to_owned());
    }),
    ("reconcile-panics", |cluster| {
        cluster.metrics = Ok("controller_runtime_reconcile_panics_total{controller=\"user\"} 1\n".to_owned());
    }),
    ("requests-forbidden", |cluster| {
        cluster.metrics =
            Ok("stanchion_api_requests_total{verb=\"get\",resource=\"secrets\",code=\"403\"} 7\n".to_owned());
    }),
    ("requests-throttled", |cluster| {
        cluster.metrics =
            Ok("stanchion_api_requests_total{verb=\"get\",resource=\"secrets\",code=\"429\"} 7\n".to_owned());
    }),
];

fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let diagnosis = diagnose(snapshot);
    assert!(diagnosis.skipped.is_empty(), "{:?}", diagnosis.skipped);
    diagnosis.findings
}

#[test]
fn a_healthy_cluster_is_ok_and_nothing_else() {
    let diagnosis = diagnose(&healthy());
    assert_eq!(diagnosis.findings, []);
    assert!(diagnosis.ok);
    assert_eq!(render(&diagnosis, false), format!("ok ({} checks)\n", ALL.len()));
}

#[test]
fn every_planted_fault_is_found_alone_and_has_a_remedy() {
    assert!(FAULTS.len() >= 25);
    for (id, plant) in FAULTS {
        let mut snapshot = healthy();
        plant(&mut snapshot);
        let findings = findings(&snapshot);
        let found: BTreeSet<&str> = findings.iter().map(|finding| finding.check).collect();
        assert_eq!(found, BTreeSet::from([*id]), "{findings:#?}");
        for finding in findings {
            assert!(
                !finding.subject.is_empty() && !finding.message.is_empty(),
                "{finding:?}"
            );
            assert!(finding.remedy.len() > 10, "{finding:?}");
        }
    }
}

#[test]
fn every_check_has_a_fault_that_it_finds_and_a_section_in_the_docs() {
    let planted: BTreeSet<&str> = FAULTS.iter().map(|(id, _)| *id).collect();
    let checks: BTreeSet<&str> = ALL.iter().map(|check| check.id).collect();
    assert_eq!(planted, checks);
    assert_eq!(checks.len(), ALL.len(), "an id is used twice");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    assert_eq!(sections, checks);
    for check in ALL {
        let section = page.split(&format!("### {}\n", check.id)).nth(1).unwrap();
        let severity = format!("{:?}.", check.severity);
        assert!(
            section.trim_start().starts_with(&severity),
            "{}: {severity}",
            check.id
        );
    }
}

#[test]
fn what_may_not_be_read_is_said_and_is_no_fault() {
    let mut snapshot = healthy();
    snapshot.rbac = Err(Unreadable::Forbidden);
    snapshot.metrics = Err(Unreadable::NotServed);
    let diagnosis = diagnose(&snapshot);
    assert_eq!(diagnosis.findings, []);
    let skipped: Vec<&str> = diagnosis.skipped.iter().map(|skipped| skipped.check).collect();
    assert!(
        skipped.contains(&"rbac-missing") && skipped.contains(&"queue-grows"),
        "{skipped:?}"
    );
    let text = render(&diagnosis, false);
    assert!(
        text.contains("skipped rbac-missing, rbac-wildcard: cannot read roles and bindings"),
        "{text}"
    );
    assert!(text.contains("--metrics FILE"), "{text}");
}

#[test]
fn the_worst_comes_first() {
    let mut snapshot = healthy();
    for (_, plant) in FAULTS
        .iter()
        .filter(|(id, _)| ["object-suspended", "operator-degraded", "flux-unavailable"].contains(id))
    {
        plant(&mut snapshot);
    }
    let order: Vec<&str> = findings(&snapshot).iter().map(|finding| finding.check).collect();
    assert_eq!(
        order,
        ["flux-unavailable", "operator-degraded", "object-suspended"]
    );
    assert!(!diagnose(&snapshot).ok);
}

/// The kinds that are read are those with a status.
#[test]
fn objects_of_every_kind_are_looked_at() {
    let kinds: Vec<String> = status::with_status()
        .iter()
        .map(|kind| kind.resource.kind.clone())
        .collect();
    for kind in [
        "PostgresUser",
        "PostgresInstance",
        "SupabaseProject",
        "PostgresPolicy",
        "PostgresPolicyPlan",
        "GitlabInstance",
    ] {
        assert!(kinds.iter().any(|known| known == kind), "{kinds:?}");
    }
}
