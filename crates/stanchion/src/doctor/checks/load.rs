//! Checks of the operator's metrics.

use super::{Fault, Outcome};
use crate::cluster::{Unreadable, printable};
use crate::doctor::metrics::{sum, values};
use crate::doctor::snapshot::Snapshot;

/// More waiting objects than this mean a problem, or a recent start.
const DEEP: f64 = 100.0;

/// Why these checks are skipped on an installation that serves its metrics as it does by default. As without `--connect`,
/// nothing is wrong then.
pub(in crate::doctor) const NO_METRICS: &str = "no metrics were given: --metrics FILE";

fn exposition(snapshot: &Snapshot) -> Result<&str, String> {
    snapshot.metrics.as_deref().map_err(|why| match why {
        Unreadable::NotServed => NO_METRICS.to_owned(),
        other => format!("cannot read metrics: {}", other.words()),
    })
}

fn fault(message: String, remedy: &str) -> Fault {
    Fault {
        subject: "operator".to_owned(),
        message,
        remedy: remedy.to_owned(),
    }
}

pub(super) fn queue_grows(snapshot: &Snapshot) -> Outcome {
    let text = exposition(snapshot)?;
    let controllers = values(text, "workqueue_depth", "controller").into_iter();
    let deep = controllers.filter_map(|controller| {
        let depth = sum(
            text,
            "workqueue_depth",
            &[&format!("controller=\"{controller}\"")],
        );
        (depth > DEEP).then(|| {
            fault(
                format!(
                    "{depth} objects of {} wait to be reconciled",
                    printable(controller)
                ),
                "see docs/runbooks/stanchionqueuegrows.md",
            )
        })
    });
    Ok(deep.collect())
}

pub(super) fn panics(snapshot: &Snapshot) -> Outcome {
    let panics = sum(
        exposition(snapshot)?,
        "controller_runtime_reconcile_panics_total",
        &[],
    );
    let some = (panics > 0.0).then(|| {
        fault(
            format!("{panics} reconciles panicked, which is a defect"),
            "stanchion report report.zip, and open an issue with it",
        )
    });
    Ok(some.into_iter().collect())
}

pub(super) fn forbidden(snapshot: &Snapshot) -> Outcome {
    let text = exposition(snapshot)?;
    let refused = sum(text, "stanchion_api_requests_total", &["code=\"403\""]);
    let some = (refused > 0.0).then(|| {
        fault(
            format!("the API server has refused {refused} requests of the operator (403)"),
            "see docs/runbooks/stanchionforbidden.md",
        )
    });
    Ok(some.into_iter().collect())
}

pub(super) fn throttled(snapshot: &Snapshot) -> Outcome {
    let text = exposition(snapshot)?;
    let throttled = sum(text, "stanchion_api_requests_total", &["code=\"429\""]);
    let some = (throttled > 0.0).then(|| {
        fault(
            format!("the API server has throttled {throttled} requests of the operator (429)"),
            "see docs/runbooks/stanchionthrottled.md",
        )
    });
    Ok(some.into_iter().collect())
}
