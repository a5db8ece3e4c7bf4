//! The checks, one row each. `docs/doctor.md` has a section for each id, and a test in `doctor/tests/faults.rs` plants each
//! fault.

mod backends;
mod certificates;
mod contacts;
mod crds;
mod load;
mod objects;
mod operator;
mod permissions;
mod webhooks;

use serde_json::Value;

pub(super) use self::load::NO_METRICS;
use super::Severity;
use super::snapshot::{Installation, Read, Snapshot};
use crate::cluster::{items, text};

/// A fault that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) subject: String,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// The faults, or why the check could not run.
type Outcome = Result<Vec<Fault>, String>;

pub(crate) struct Check {
    /// Its id, which is also its heading in `docs/doctor.md`.
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    pub(super) run: fn(&Snapshot) -> Outcome,
}

const fn check(id: &'static str, severity: Severity, run: fn(&Snapshot) -> Outcome) -> Check {
    Check { id, severity, run }
}

/// All checks, in the order of `docs/doctor.md`.
pub(crate) const ALL: &[Check] = &[
    check("kubernetes-too-old", Severity::Error, crds::kubernetes_too_old),
    check("crd-missing", Severity::Error, crds::missing),
    check("crd-not-established", Severity::Error, crds::not_established),
    check("crd-outdated", Severity::Warning, crds::outdated),
    check("crd-stored-version", Severity::Warning, crds::stored_version),
    check("operator-missing", Severity::Error, operator::missing),
    check("operator-unavailable", Severity::Error, operator::unavailable),
    check("operator-degraded", Severity::Warning, operator::degraded),
    check("operator-overlap", Severity::Error, operator::overlap),
    check("operator-image", Severity::Error, operator::image),
    check("operator-crashes", Severity::Error, operator::crashes),
    check("operator-out-of-memory", Severity::Error, operator::out_of_memory),
    check("operator-version", Severity::Info, operator::version),
    check("operator-namespace", Severity::Error, operator::watched_namespace),
    check("lease-missing", Severity::Error, operator::lease_missing),
    check("lease-expired", Severity::Error, operator::lease_expired),
    check("rbac-missing", Severity::Error, permissions::missing),
    check("rbac-wildcard", Severity::Warning, permissions::wildcard),
    check("webhook-missing", Severity::Warning, webhooks::missing),
    check("webhook-left-behind", Severity::Warning, webhooks::left_behind),
    check("webhook-service", Severity::Warning, webhooks::service),
    check("webhook-blocks", Severity::Warning, webhooks::blocks),
    check("certificate-expired", Severity::Error, certificates::expired),
    check("certificate-expires", Severity::Warning, certificates::expires),
    check("object-failed", Severity::Error, objects::failed),
    check("object-not-ready", Severity::Warning, objects::not_ready),
    check("object-ignored", Severity::Error, objects::ignored),
    check("object-unwatched", Severity::Warning, objects::unwatched),
    check("finalizer-stuck", Severity::Error, objects::finalizer_stuck),
    check("object-drifted", Severity::Warning, objects::drifted),
    check("plan-waits", Severity::Info, objects::plan_waits),
    check("object-suspended", Severity::Info, objects::suspended),
    check(
        "database-unreachable",
        Severity::Error,
        objects::database_unreachable,
    ),
    check("bucket-unreachable", Severity::Error, objects::bucket_unreachable),
    check("dependency-slow", Severity::Warning, objects::dependency_slow),
    check("connect-database", Severity::Warning, contacts::database),
    check("connect-bucket", Severity::Warning, contacts::bucket),
    check("connect-secret", Severity::Warning, contacts::secret),
    check("flux-missing", Severity::Error, backends::flux_missing),
    check("flux-unavailable", Severity::Error, backends::flux_unavailable),
    check(
        "backend-operator-missing",
        Severity::Error,
        backends::operator_missing,
    ),
    check("queue-grows", Severity::Warning, load::queue_grows),
    check("reconcile-panics", Severity::Error, load::panics),
    check("requests-forbidden", Severity::Error, load::forbidden),
    check("requests-throttled", Severity::Warning, load::throttled),
];

/// The value that was read, or why the check is skipped.
fn need<'a, T>(what: &str, read: &'a Read<T>) -> Result<&'a T, String> {
    read.as_ref()
        .map_err(|why| format!("cannot read {what}: {}", why.words()))
}

/// The installations of the operator.
fn installations(snapshot: &Snapshot) -> Result<Vec<Installation<'_>>, String> {
    let deployments = need("deployments", &snapshot.deployments)?;
    Ok(deployments.iter().map(Installation::of).collect())
}

/// The condition with this type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "/status/conditions").find(|condition| condition["type"] == kind)
}

/// `PostgresUser shop/alice`
pub(super) fn subject(object: &Value) -> String {
    let name = text(object, "/metadata/name");
    let name = match text(object, "/metadata/namespace") {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    };
    crate::cluster::printable(&format!("{} {name}", text(object, "/kind")))
}
