//! Checks of the cluster's version and the CRDs.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use serde_json::Value;

use super::{Fault, Outcome, condition, installations, items, need, subject, text};
use crate::controllers;
use crate::doctor::snapshot::Snapshot;

/// The oldest supported minor version; see docs/supported-versions.md.
const OLDEST: u32 = 33;
const INSTALL: &str = "stanchion crds | kubectl apply --server-side --force-conflicts -f -";

#[allow(clippy::unnecessary_wraps, reason = "as every check")]
pub(super) fn kubernetes_too_old(snapshot: &Snapshot) -> Outcome {
    let mut numbers = snapshot.version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next(), numbers.next());
    let minor = minor.and_then(|minor| {
        minor
            .trim_end_matches(|c: char| !c.is_ascii_digit())
            .parse::<u32>()
            .ok()
    });
    let old = major == Some("1") && minor.is_some_and(|minor| minor < OLDEST);
    Ok(old
        .then(|| Fault {
            subject: "cluster".to_owned(),
            message: format!(
                "Kubernetes {} is older than 1.{OLDEST}, the oldest version that is tested",
                snapshot.version
            ),
            remedy: "upgrade the cluster; docs/supported-versions.md lists the versions".to_owned(),
        })
        .into_iter()
        .collect())
}

/// The names of the CRDs that the installations need; all of them if nothing is installed.
fn needed(snapshot: &Snapshot) -> BTreeSet<String> {
    let installations = installations(snapshot).unwrap_or_default();
    let rows = controllers::ALL.iter().filter(|row| {
        installations.is_empty()
            || installations
                .iter()
                .any(|installation| installation.runs(row.name))
    });
    rows.flat_map(|row| (row.kinds)())
        .map(|kind| format!("{}.{}", kind.resource.plural, kind.resource.group))
        .collect()
}

/// The installed CRDs, with those of this program.
fn installed(snapshot: &Snapshot) -> Result<Vec<(CustomResourceDefinition, &Value)>, String> {
    let there = need("CRDs", &snapshot.crds)?;
    let pairs = stanchion_api::crds().into_iter().filter_map(|ours| {
        let name = ours.name_any();
        let theirs = there.iter().find(|crd| text(crd, "/metadata/name") == name)?;
        Some((ours, theirs))
    });
    Ok(pairs.collect())
}

pub(super) fn missing(snapshot: &Snapshot) -> Outcome {
    let there = need("CRDs", &snapshot.crds)?;
    let names: BTreeSet<&str> = there.iter().map(|crd| text(crd, "/metadata/name")).collect();
    let missing = needed(snapshot)
        .into_iter()
        .filter(|name| !names.contains(name.as_str()));
    Ok(missing
        .map(|name| Fault {
            subject: format!("CustomResourceDefinition {name}"),
            message: "is not installed; the operator does not start without it".to_owned(),
            remedy: INSTALL.to_owned(),
        })
        .collect())
}

pub(super) fn not_established(snapshot: &Snapshot) -> Outcome {
    let mut faults = Vec::new();
    for (_, crd) in installed(snapshot)? {
        let refused = condition(crd, "NamesAccepted").filter(|condition| condition["status"] == "False");
        let waiting = condition(crd, "Established").filter(|condition| condition["status"] != "True");
        if let Some(why) = refused.or(waiting) {
            let name = text(crd, "/metadata/name");
            faults.push(Fault {
                subject: format!("CustomResourceDefinition {name}"),
                message: format!(
                    "is not served: {}",
                    crate::cluster::printable(text(why, "/message"))
                ),
                remedy: format!("kubectl describe crd {name}; another CRD with the same names must go first"),
            });
        }
    }
    Ok(faults)
}

pub(super) fn outdated(snapshot: &Snapshot) -> Outcome {
    let mut faults = Vec::new();
    for (ours, theirs) in installed(snapshot)? {
        let ours = serde_json::to_value(&ours).map_err(|error| error.to_string())?;
        let missing: Vec<String> = fields(&ours).difference(&fields(theirs)).cloned().collect();
        if let Some(first) = missing.first() {
            faults.push(Fault {
                subject: format!("CustomResourceDefinition {}", text(theirs, "/metadata/name")),
                message: format!(
                    "lacks {} fields that this version knows, such as {first}",
                    missing.len()
                ),
                remedy: INSTALL.to_owned(),
            });
        }
    }
    Ok(faults)
}

/// The paths of all fields in all versions of a CRD.
fn fields(crd: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for version in items(crd, "/spec/versions") {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            walk(schema, "", &mut paths);
        }
    }
    paths
}

fn walk(schema: &Value, path: &str, paths: &mut BTreeSet<String>) {
    for (name, field) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let path = format!("{path}.{name}");
        walk(field, &path, paths);
        paths.insert(path);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(field) = schema.get(inner) {
            walk(field, &format!("{path}[]"), paths);
        }
    }
}

pub(super) fn stored_version(snapshot: &Snapshot) -> Outcome {
    let mut faults = Vec::new();
    for (ours, theirs) in installed(snapshot)? {
        let served: Vec<&str> = ours
            .spec
            .versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        let stored = items(theirs, "/status/storedVersions").filter_map(Value::as_str);
        let old: Vec<&str> = stored.filter(|version| !served.contains(version)).collect();
        if !old.is_empty() {
            let name = text(theirs, "/metadata/name");
            faults.push(Fault {
                subject: subject(theirs),
                message: format!(
                    "objects are still stored as {}, which this version does not serve",
                    old.join(", ")
                ),
                remedy: format!(
                    "kubectl get {name} -A -o json | kubectl replace -f -; then remove the version from status.storedVersions"
                ),
            });
        }
    }
    Ok(faults)
}
