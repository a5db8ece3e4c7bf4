//! The original's events, sent once on each transition.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use stanchion_api::policy::{PostgresPolicyStatus, condition};
use stanchion_kernel::condition::find;
use stanchion_kernel::events::Notice;

use super::Passed;
use crate::apply::Happening;
use crate::problems;
use crate::target::Target;

const ACTION: &str = "Reconcile";

/// The events between two statuses.
pub(super) fn of(
    before: &PostgresPolicyStatus,
    after: &PostgresPolicyStatus,
    passed: &Passed<'_>,
) -> Vec<Notice> {
    let now = |kind| find(&after.conditions, kind);
    let was = |kind| find(&before.conditions, kind);
    let became = |kind, status: &str| {
        now(kind).filter(|it| it.status == status && was(kind).is_none_or(|was| was.status != status))
    };
    let mut notices: Vec<Notice> = passed.applied.happened.iter().map(happened).collect();
    let mut tell = |notice: Notice| notices.push(notice);
    if let Some(conflict) = became(condition::CONFLICT, "True") {
        tell(Notice::warning("ConflictDetected", ACTION, &conflict.message));
    } else if became(condition::CONFLICT, "False").is_some() && was(condition::CONFLICT).is_some() {
        tell(Notice::normal(
            "ConflictResolved",
            ACTION,
            "no other policy declares the same any more",
        ));
    }
    if let Some(paused) = became(condition::PAUSED, "True") {
        tell(Notice::normal("Suspended", ACTION, &paused.message));
    } else if became(condition::PAUSED, "False").is_some() && was(condition::PAUSED).is_some() {
        tell(Notice::normal(
            "Resumed",
            ACTION,
            "the policy is reconciled again",
        ));
    }
    if let Some(password) = became(condition::PASSWORD_IN_SPEC, "True") {
        tell(Notice::warning("PasswordInSpec", ACTION, &password.message));
    }
    if let Some(drift) = became(condition::DRIFTED, "True") {
        tell(Notice::normal("DriftDetected", ACTION, &drift.message));
    }
    if became(condition::DRIFTED, "False").is_some()
        && was(condition::DRIFTED).is_some()
        && matches!(passed.target, Some(Target::Present(wanted)) if !wanted.mode.applies())
    {
        tell(Notice::normal("PlanClean", ACTION, "the database is as declared"));
    }
    match passed.problem {
        Some(problem) if problem.reason == problems::CONFLICT => {}
        Some(problem) => {
            let is_news = |was: &Condition| was.status != "False" || was.reason != problem.reason;
            let shown = now(condition::READY).is_some_and(|it| it.reason == problem.reason);
            if shown && was(condition::READY).is_none_or(is_news) {
                let reason = match problem.reason {
                    problems::UNSAFE_DROPS => "UnsafeRoleDropsBlocked",
                    reason => reason,
                };
                tell(Notice::warning(reason, ACTION, &problem.message));
            }
        }
        None => {
            if let Some(ready) = became(condition::READY, "True") {
                let failed_before = was(condition::DEGRADED).is_some_and(|it| it.status == "True");
                let reason = if failed_before { "Recovered" } else { "Reconciled" };
                tell(Notice::normal(reason, ACTION, &ready.message));
            }
        }
    }
    notices
}

fn happened(what: &Happening) -> Notice {
    match what {
        Happening::Created(plan) => Notice::normal("PlanCreated", "Plan", format!("plan {plan} was made")),
        Happening::Approved(plan, who) => Notice::normal(
            "PlanApproved",
            "Plan",
            format!("plan {plan} was approved by {who}"),
        ),
        Happening::Rejected(plan, who) => Notice::warning(
            "PlanRejected",
            "Plan",
            format!("plan {plan} was rejected by {who}"),
        ),
        Happening::Started(plan) => {
            Notice::normal("ApplyStarted", "Apply", format!("plan {plan} is carried out"))
        }
        Happening::Succeeded(plan, changes) => Notice::normal(
            "ApplySucceeded",
            "Apply",
            format!("plan {plan} was carried out: {changes} change(s)"),
        ),
        Happening::Failed(plan, error) => {
            Notice::warning("ApplyFailed", "Apply", format!("plan {plan} failed: {error}"))
        }
    }
}
