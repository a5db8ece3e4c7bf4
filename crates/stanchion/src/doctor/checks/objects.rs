//! Checks of the objects, from their status.

use jiff::Timestamp;
use serde_json::Value;
use stanchion_fleet::plans::ReadyPolicies;

use super::{Fault, Outcome, condition, installations, items, need, subject, text};
use crate::cluster::printable;
use crate::controllers;
use crate::doctor::snapshot::{Installation, Snapshot};
use crate::status::with_status;

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;
/// A server that takes longer is slow, in milliseconds.
const SLOW: i64 = 1000;

/// One fault for each object that `say` finds fault with.
fn each(snapshot: &Snapshot, say: impl Fn(&Value) -> Option<(String, String)>) -> Outcome {
    let objects = need("objects", &snapshot.objects)?;
    let faults = objects.iter().filter_map(|object| {
        let (message, remedy) = say(object)?;
        Some(Fault {
            subject: subject(object),
            message,
            remedy,
        })
    });
    Ok(faults.collect())
}

fn deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

fn is_plan(object: &Value) -> bool {
    object["kind"] == "PostgresPolicyPlan"
}

/// `-n shop postgresusers/alice`
fn place(object: &Value) -> String {
    let kind = with_status()
        .iter()
        .find(|kind| object["kind"] == kind.resource.kind.as_str());
    let plural = kind.map_or_else(
        || text(object, "/kind").to_lowercase(),
        |kind| kind.plural().to_owned(),
    );
    format!(
        "-n {} {plural}/{}",
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name")
    )
}

/// The number of seconds since this time.
fn ago(snapshot: &Snapshot, time: &str) -> Option<i64> {
    let time: Timestamp = time.parse().ok()?;
    Some(snapshot.now.as_second() - time.as_second())
}

fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == status)
}

fn said(object: &Value, kind: &str) -> String {
    condition(object, kind)
        .map(|condition| {
            let (reason, message) = (text(condition, "/reason"), text(condition, "/message"));
            printable(&format!("{reason}: {message}"))
        })
        .unwrap_or_default()
}

pub(super) fn failed(snapshot: &Snapshot) -> Outcome {
    let objects = need("objects", &snapshot.objects)?;
    let policies = ReadyPolicies::of(objects.iter().map(|object| (text(object, "/kind"), object)));
    each(snapshot, |object| {
        let plan_failed =
            is_plan(object) && text(object, "/status/phase") == "Failed" && !policies.has_that_of(object);
        let message = match text(object, "/status/lastError") {
            _ if deleted(object) => return None,
            _ if is(object, "Stalled", "True") => format!("waits for a person: {}", said(object, "Stalled")),
            "" if plan_failed => "failed; its policy says why".to_owned(),
            error if plan_failed => format!("failed: {error}"),
            _ => return None,
        };
        Some((message, format!("stanchion status {}", place(object))))
    })
}

pub(super) fn not_ready(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        let since = condition(object, "Ready").filter(|ready| ready["status"] != "True")?;
        let late = ago(snapshot, text(since, "/lastTransitionTime"))?;
        let suspended = text(object, "/status/phase") == "Suspended";
        if late < 15 * MINUTE || deleted(object) || suspended || is(object, "Stalled", "True") {
            return None;
        }
        Some((
            format!(
                "has not been ready for {} minutes: {}",
                late / MINUTE,
                said(object, "Ready")
            ),
            format!("stanchion status {}", place(object)),
        ))
    })
}

/// The installation that watches this object.
fn watcher<'a, 'b>(installations: &'a [Installation<'b>], object: &Value) -> Option<&'a Installation<'b>> {
    let controller = controllers::ALL.iter().find(|row| {
        (row.kinds)()
            .iter()
            .any(|kind| object["kind"] == kind.resource.kind.as_str())
    });
    installations.iter().find(|installation| {
        installation.watches(text(object, "/metadata/namespace"))
            && controller.is_some_and(|row| installation.runs(row.name))
    })
}

/// When the spec was last changed, as far as the API server has recorded it.
fn written(object: &Value) -> &str {
    let changes = items(object, "/metadata/managedFields")
        .filter(|entry| entry.pointer("/fieldsV1/f:spec").is_some())
        .map(|entry| text(entry, "/time"));
    // All of them are in the same format.
    changes
        .max()
        .unwrap_or_default()
        .max(text(object, "/metadata/creationTimestamp"))
}

pub(super) fn ignored(snapshot: &Snapshot) -> Outcome {
    let installations = installations(snapshot)?;
    each(snapshot, |object| {
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        let observed = ["/status/observedGeneration", "/status/observed_generation"]
            .iter()
            .find_map(|pointer| object.pointer(pointer)?.as_i64());
        let waited = ago(snapshot, written(object))?;
        let behind = observed.is_none() || (generation.is_some() && observed != generation);
        if !behind || waited < 5 * MINUTE || is_plan(object) || deleted(object) {
            return None;
        }
        let installation = watcher(&installations, object)?;
        let message = match observed {
            None => "the operator has never reconciled it".to_owned(),
            Some(_) => "the operator has not reconciled its newest spec".to_owned(),
        };
        Some((
            message,
            format!(
                "kubectl -n {} logs deployment/{} --all-pods --tail=100; the operator may not lead, or its queue may be full",
                installation.namespace, installation.name
            ),
        ))
    })
}

pub(super) fn unwatched(snapshot: &Snapshot) -> Outcome {
    if snapshot.operator_namespace.is_some() {
        return Err("with --operator-namespace, other installations are not read".to_owned());
    }
    let installations = installations(snapshot)?;
    if installations.is_empty() {
        // Another check reports this.
        return Ok(Vec::new());
    }
    each(snapshot, |object| {
        if watcher(&installations, object).is_some() {
            return None;
        }
        let namespace = text(object, "/metadata/namespace");
        Some((
            "no installation watches this namespace with this controller".to_owned(),
            format!("add {namespace} to `namespaces`, or enable the controller, and helm upgrade"),
        ))
    })
}

pub(super) fn finalizer_stuck(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        let late = ago(snapshot, text(object, "/metadata/deletionTimestamp"))?;
        let finalizers: Vec<&str> = items(object, "/metadata/finalizers")
            .filter_map(Value::as_str)
            .collect();
        if late < 10 * MINUTE || finalizers.is_empty() {
            return None;
        }
        let why = ["Stalled", "Reconciling"]
            .iter()
            .find(|kind| is(object, kind, "True"));
        let why = why.map_or_else(
            || "the operator has not said why".to_owned(),
            |kind| said(object, kind),
        );
        Some((
            format!(
                "has been deleted for {} minutes and waits for {}: {why}",
                late / MINUTE,
                printable(&finalizers.join(", "))
            ),
            format!(
                "stanchion status {}; removing the finalizer by hand leaves its role or its release behind",
                place(object)
            ),
        ))
    })
}

pub(super) fn drifted(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        (is(object, "Drifted", "True") && !deleted(object)).then(|| {
            (
                format!(
                    "it was changed outside of the operator: {}",
                    said(object, "Drifted")
                ),
                format!("stanchion status {}", place(object)),
            )
        })
    })
}

pub(super) fn plan_waits(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        if !is_plan(object) || text(object, "/status/phase") != "Pending" {
            return None;
        }
        let late = ago(snapshot, text(object, "/status/computedAt"))?;
        (late > DAY).then(|| {
            (
                format!("has waited for a decision for {} days", late / DAY),
                format!(
                    "kubectl annotate {} pgroles.io/approved=true (or pgroles.io/rejected=true)",
                    place(object)
                ),
            )
        })
    })
}

pub(super) fn suspended(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        let by_spec = object.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true);
        (by_spec || text(object, "/status/phase") == "Suspended").then(|| {
            let patch = r#"'{"spec":{"suspend":false}}'"#;
            (
                "is suspended: the operator does not reconcile it".to_owned(),
                format!("kubectl patch {} --type=merge -p {patch}", place(object)),
            )
        })
    })
}

pub(super) fn database_unreachable(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        let by_condition = ["DatabaseConnected", "Connected"]
            .iter()
            .find(|kind| is(object, kind, "False"))
            .map(|kind| said(object, kind));
        let by_dependency = object
            .pointer("/status/dependencies/postgresql")
            .filter(|server| server["connected"] == false)
            .map(|server| printable(text(server, "/error")));
        let why = by_condition.or(by_dependency).filter(|_| !deleted(object))?;
        Some((
            format!("the operator does not reach its database: {why}"),
            format!("stanchion status {}", place(object)),
        ))
    })
}

pub(super) fn bucket_unreachable(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        let bucket = object
            .pointer("/status/dependencies/s3")
            .filter(|bucket| bucket["connected"] == false)?;
        (!deleted(object)).then(|| {
            (
                format!(
                    "the operator does not reach its bucket: {}",
                    printable(text(bucket, "/error"))
                ),
                format!("stanchion status {}", place(object)),
            )
        })
    })
}

pub(super) fn dependency_slow(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |object| {
        let dependencies = object.pointer("/status/dependencies")?.as_object()?;
        let (name, latency) = dependencies.iter().find_map(|(name, dependency)| {
            let latency = dependency.get("latencyMs")?.as_i64()?;
            (latency > SLOW).then_some((name, latency))
        })?;
        Some((
            format!("{} took {latency} ms to answer", printable(name)),
            format!("stanchion status {}", place(object)),
        ))
    })
}
