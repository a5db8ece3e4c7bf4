//! The faults, each with the check that finds it.

use serde_json::{Value, json};

use super::fixture::{bundle, condition, contact, deployment, minutes_ago, object};
use crate::doctor::connect::{ConnectFailure, What};
use crate::doctor::snapshot::{Read, Snapshot};

/// A fault: its id, and how it is planted.
pub(super) type Plant = (&'static str, fn(&mut Snapshot));

pub(super) fn first(list: &mut Read<Vec<Value>>) -> &mut Value {
    list.as_mut().unwrap().first_mut().unwrap()
}

/// The object of this name.
pub(super) fn of<'a>(snapshot: &'a mut Snapshot, name: &str) -> &'a mut Value {
    let objects = snapshot.objects.as_mut().unwrap();
    objects
        .iter_mut()
        .find(|object| object["metadata"]["name"] == name)
        .unwrap()
}

pub(super) fn push(snapshot: &mut Snapshot, object: Value) {
    snapshot.objects.as_mut().unwrap().push(object);
}

/// The CAs of the first configuration are valid for so many days.
pub(super) fn trust(snapshot: &mut Snapshot, days: &[i64]) {
    first(&mut snapshot.webhooks)["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle(days));
}

/// A Deployment whose certificate cert-manager issues.
pub(super) fn mounted() -> Value {
    deployment("stanchion-system", &["--webhook-cert-dir=/etc/stanchion/webhook"])
}

pub(super) fn failed_plan() -> Value {
    let mut plan = object("PostgresPolicyPlan", "p-1");
    plan["spec"]["policyRef"] = json!({ "name": "app" });
    plan["status"] = json!({ "phase": "Failed", "lastError": "permission denied for schema billing" });
    plan
}

/// The installation runs this controller only, and there are no objects of others.
pub(super) fn only(snapshot: &mut Snapshot, controller: &str) {
    let chosen = format!("--controllers={controller}");
    snapshot.deployments = Ok(vec![deployment("stanchion-system", &[&chosen])]);
    snapshot.objects = Ok(Vec::new());
}

pub(super) const FAULTS: &[Plant] = &[
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
    ("object-failed", |cluster| {
        push(cluster, failed_plan());
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
