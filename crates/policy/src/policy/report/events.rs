//! The original's events, sent once on each transition.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use stanchion_api::policy::{PostgresPolicyStatus, condition};
use stanchion_kernel::condition::find;
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::problem::Cause;

use super::Passed;
use crate::policy::apply::PlanEvent;

const ACTION: &str = "Reconcile";

/// The events between two statuses.
pub(super) fn of(
    before: &PostgresPolicyStatus,
    after: &PostgresPolicyStatus,
    passed: &Passed<'_>,
) -> Vec<EventRecord> {
    let now = |kind| find(&after.conditions, kind);
    let was = |kind| find(&before.conditions, kind);
    let became = |kind, status: &str| {
        now(kind).filter(|it| it.status == status && was(kind).is_none_or(|was| was.status != status))
    };
    let mut events: Vec<EventRecord> = passed.applied.plan_events.iter().map(plan_event).collect();
    let mut send = |event: EventRecord| events.push(event);
    if let Some(conflict) = became(condition::CONFLICT, "True") {
        send(EventRecord::warning(
            "ConflictDetected",
            ACTION,
            &conflict.message,
        ));
    } else if became(condition::CONFLICT, "False").is_some() && was(condition::CONFLICT).is_some() {
        send(EventRecord::normal(
            "ConflictResolved",
            ACTION,
            "no other policy declares the same objects",
        ));
    }
    if let Some(paused) = became(condition::PAUSED, "True") {
        send(EventRecord::normal("Suspended", ACTION, &paused.message));
    } else if became(condition::PAUSED, "False").is_some() && was(condition::PAUSED).is_some() {
        send(EventRecord::normal(
            "Resumed",
            ACTION,
            "the policy is reconciled again",
        ));
    }
    if let Some(password) = became(condition::PASSWORD_IN_SPEC, "True") {
        send(EventRecord::warning("PasswordInSpec", ACTION, &password.message));
    }
    if let Some(drift) = became(condition::DRIFTED, "True") {
        send(EventRecord::normal("DriftDetected", ACTION, &drift.message));
    }
    if became(condition::DRIFTED, "False").is_some()
        && was(condition::DRIFTED).is_some()
        && passed.target.is_some_and(|wanted| !wanted.mode.applies())
    {
        send(EventRecord::normal(
            "PlanClean",
            ACTION,
            "the database is as declared",
        ));
    }
    match passed.problem {
        Some(problem) if problem.is(Cause::Overlap) => {}
        Some(problem) => {
            let is_news = |was: &Condition| was.status != "False" || was.reason != problem.reason;
            let shown = now(condition::READY).is_some_and(|it| it.reason == problem.reason);
            if shown && was(condition::READY).is_none_or(is_news) {
                let reason = match problem.cause {
                    Cause::UnsafeDrop => "UnsafeRoleDropsBlocked",
                    _ => problem.reason,
                };
                send(EventRecord::warning(reason, ACTION, &problem.message));
            }
        }
        None => {
            if let Some(ready) = became(condition::READY, "True") {
                let failed_before = was(condition::DEGRADED).is_some_and(|it| it.status == "True");
                let reason = if failed_before { "Recovered" } else { "Reconciled" };
                send(EventRecord::normal(reason, ACTION, &ready.message));
            }
        }
    }
    events
}

fn plan_event(what: &PlanEvent) -> EventRecord {
    match what {
        PlanEvent::Created(plan) => {
            EventRecord::normal("PlanCreated", "Plan", format!("plan {plan} was made"))
        }
        PlanEvent::Approved(plan, who) => EventRecord::normal(
            "PlanApproved",
            "Plan",
            format!("plan {plan} was approved by {who}"),
        ),
        PlanEvent::Rejected(plan, who) => EventRecord::warning(
            "PlanRejected",
            "Plan",
            format!("plan {plan} was rejected by {who}"),
        ),
        PlanEvent::Started(plan) => {
            EventRecord::normal("ApplyStarted", "Apply", format!("plan {plan} is carried out"))
        }
        PlanEvent::Succeeded(plan, changes) => EventRecord::normal(
            "ApplySucceeded",
            "Apply",
            format!("plan {plan} was carried out: {changes} change(s)"),
        ),
        PlanEvent::Failed(plan, error) => {
            EventRecord::warning("ApplyFailed", "Apply", format!("plan {plan} failed: {error}"))
        }
    }
}
