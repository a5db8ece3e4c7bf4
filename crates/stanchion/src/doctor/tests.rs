//! Plants every fault into a healthy snapshot and finds it under its own id; the healthy snapshot has no findings.

mod fixture;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use self::fixture::{bundle, condition, contact, deployment, healthy, minutes_ago, object};
use super::connect::{ConnectFailure, What};
use super::snapshot::Snapshot;
use super::{ALL, Finding, diagnose, render};
use crate::cluster::Unreadable;
use crate::status;

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

/// The CAs of the first configuration are valid for so many days.
fn trust(snapshot: &mut Snapshot, days: &[i64]) {
    first(&mut snapshot.webhooks)["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle(days));
}

/// A Deployment whose certificate cert-manager issues.
fn mounted() -> Value {
    deployment("stanchion-system", &["--webhook-cert-dir=/etc/stanchion/webhook"])
}

/// The installation runs this controller only, and there are no objects of others.
fn only(snapshot: &mut Snapshot, controller: &str) {
    let chosen = format!("--controllers={controller}");
    snapshot.deployments = Ok(vec![deployment("stanchion-system", &[&chosen])]);
    snapshot.objects = Ok(Vec::new());
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
    ("operator-version", |cluster| {
        let deployment = first(&mut cluster.deployments);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("stanchion@sha256:00aa");
        deployment["metadata"]["labels"] = json!({ "app.kubernetes.io/version": "0.0.1" });
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
    ("webhook-missing", |cluster| {
        only(cluster, "policy");
        cluster.webhooks = Ok(Vec::new());
    }),
    ("webhook-missing", |cluster| {
        only(cluster, "gitlab");
        cluster.webhooks = Ok(Vec::new());
    }),
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
        trust(cluster, &[-3]);
    }),
    ("certificate-expired", |cluster| trust(cluster, &[-33, -3, 27])),
    ("certificate-expired", |cluster| {
        cluster.deployments = Ok(vec![mounted()]);
        let status = &mut first(&mut cluster.certificates)["status"];
        status["notAfter"] = json!(minutes_ago(3));
        status["renewalTime"] = json!(minutes_ago(3000));
    }),
    ("certificate-expires", |cluster| {
        cluster.deployments = Ok(vec![mounted()]);
        first(&mut cluster.certificates)["status"]["renewalTime"] = json!(minutes_ago(90));
    }),
    ("certificate-expires", |cluster| {
        trust(cluster, &[3]);
    }),
    ("certificate-expires", |cluster| trust(cluster, &[-27, 3, 33])),
    ("certificate-expires", |cluster| {
        cluster.deployments = Ok(vec![mounted()]);
        trust(cluster, &[3]);
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
        let why = ConnectFailure::Failed("ConnectionRefused: nothing listens there".to_owned());
        cluster.contacts = vec![contact(What::Database, Err(why))];
    }),
    ("connect-bucket", |cluster| {
        let why = ConnectFailure::Failed("HostNotFound: no DNS knows the name".to_owned());
        cluster.contacts = vec![contact(What::Bucket, Err(why))];
    }),
    ("connect-secret", |cluster| {
        let why = ConnectFailure::Unread("Secret db: you may not read it".to_owned());
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

/// The pods serve their metrics on no port, and nobody gave a file: a healthy installation is ok all the same.
#[test]
fn an_installation_with_its_default_settings_is_ok_and_nothing_else() {
    let mut snapshot = healthy();
    snapshot.metrics = Err(Unreadable::NotServed);
    let text = render(&diagnose(&snapshot), false);
    let checks = ALL.len() - 4;
    assert_eq!(text, format!("ok ({checks} checks, 4 more with --metrics)\n"));
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
    assert!(text.ends_with(", 4 more with --metrics)\n"), "{text}");
    // Metrics that exist and cannot be read are another matter.
    snapshot.metrics = Err(Unreadable::Forbidden);
    let text = render(&diagnose(&snapshot), false);
    assert!(
        text.contains("skipped queue-grows, reconcile-panics, requests-forbidden, requests-throttled: cannot read metrics"),
        "{text}"
    );
}

/// A mounted bundle contains the CAs that are trusted at present: one of them is enough.
#[test]
fn a_mounted_bundle_is_valid_until_its_last_certificate_ends() {
    let mut snapshot = healthy();
    snapshot.deployments = Ok(vec![mounted()]);
    for webhook in snapshot.webhooks.as_mut().unwrap() {
        webhook["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle(&[-5, 3, 60]));
    }
    assert_eq!(findings(&snapshot), []);
}

/// Who may not list the certificates of cert-manager still hears of a CA that ends; without cert-manager, nobody needs to.
#[test]
fn certificates_that_may_not_be_read_do_not_hide_the_ca() {
    let mut snapshot = healthy();
    snapshot.certificates = Err(Unreadable::Forbidden);
    assert_eq!(findings(&snapshot), [], "the operator makes its own");

    snapshot.deployments = Ok(vec![mounted()]);
    let skipped: Vec<&str> = diagnose(&snapshot)
        .skipped
        .iter()
        .map(|skipped| skipped.check)
        .collect();
    assert_eq!(skipped, ["certificate-expired", "certificate-expires"]);

    trust(&mut snapshot, &[-3]);
    let diagnosis = diagnose(&snapshot);
    let found: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.check).collect();
    assert_eq!(found, ["certificate-expired"]);
}

/// `helm test` looks at one installation; what others watch is not known to it.
#[test]
fn with_a_namespace_of_the_operator_no_object_is_unwatched() {
    let mut snapshot = healthy();
    snapshot.operator_namespace = Some("stanchion-system".to_owned());
    snapshot.deployments = Ok(vec![deployment("stanchion-system", &["--namespace=team"])]);
    snapshot
        .namespaces
        .as_mut()
        .unwrap()
        .push(json!({ "metadata": { "name": "team" } }));
    let diagnosis = diagnose(&snapshot);
    assert_eq!(diagnosis.findings, []);
    let skipped: Vec<&str> = diagnosis.skipped.iter().map(|skipped| skipped.check).collect();
    assert_eq!(skipped, ["object-unwatched"]);
}

/// The operator gets as much time for a new spec as for a new object.
#[test]
fn a_spec_that_was_just_changed_is_not_ignored() {
    let changed = |minutes: i64| {
        let mut snapshot = healthy();
        let metadata = &mut of(&mut snapshot, "alice")["metadata"];
        metadata["generation"] = json!(2);
        metadata["managedFields"] = json!([
            { "manager": "kubectl", "time": minutes_ago(minutes), "fieldsV1": { "f:spec": {} } },
            { "manager": "kubectl", "time": minutes_ago(900), "fieldsV1": { "f:spec": {} } },
            { "manager": "stanchion", "time": minutes_ago(0), "subresource": "status", "fieldsV1": { "f:status": {} } },
        ]);
        findings(&snapshot).len()
    };
    assert_eq!((changed(1), changed(7)), (0, 1));
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
