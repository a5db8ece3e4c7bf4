//! Builds the status.

mod conditions;
mod events;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use stanchion_api::PostgresPolicy;
use stanchion_api::policy::{PlanRef, PostgresPolicyStatus, annotation, condition};
use stanchion_api::status::Status;
use stanchion_kernel::condition::{Conditions, Truth, find};
use stanchion_kernel::problem::{Cause, Class};
use stanchion_kernel::text::shorten;
use stanchion_kernel::{Outcome, Problem, Report};
use stanchion_postgres::Security;

use self::conditions::{connected, drifted, password_in_spec, resumed, uncontested, unmanaged};
use crate::claims::Rival;
use crate::overlap::defined;
use crate::policy::PolicyController;
use crate::policy::apply::{Applied, PassResult, PlanOutcome};
use crate::policy::observe::{Found, Observed};
use crate::policy::target::{Content, Wanted};
use crate::problems;
use kube::ResourceExt;

/// How many warnings are in the status.
const SHOWN_WARNINGS: usize = 20;
/// Most bytes of one of them.
const LONGEST_WARNING: usize = 1024;
/// Most bytes of `last_error`.
pub(crate) const LONGEST_ERROR: usize = 16 * 1024;

/// The progress of a reconcile, as far as it is reported.
struct Passed<'a> {
    target: Option<&'a Wanted>,
    known: Option<Known<'a>>,
    applied: &'a Applied,
    problem: Option<&'a Problem>,
}

/// What a reconcile that reached the database knows.
struct Known<'a> {
    /// Identity of the database.
    identity: String,
    /// The desired state.
    content: &'a Content,
    /// The conflicting policies.
    rivals: &'a [Rival],
    /// How far the server was verified.
    security: Security,
    /// Warnings about the server.
    warnings: &'a [String],
}

impl<'a> Passed<'a> {
    fn of(outcome: &Outcome<'a, PolicyController>) -> Self {
        let known = match outcome.observed {
            Some(Observed::Connected(connected)) => match &connected.found {
                Found::Conflict(conflicting) => Some(Known {
                    identity: conflicting.identity.to_string(),
                    content: &conflicting.content,
                    rivals: &conflicting.rivals,
                    security: conflicting.security,
                    warnings: &[],
                }),
                Found::Database(current) => Some(Known {
                    identity: current.identity.to_string(),
                    content: &current.content,
                    rivals: &outcome.applied.rivals,
                    security: current.security,
                    warnings: &current.warnings,
                }),
                Found::Failed(_) => None,
            },
            Some(Observed::Unchanged | Observed::Failed(_)) | None => None,
        };
        Self {
            target: outcome.target,
            known,
            applied: outcome.applied,
            problem: outcome.problem,
        }
    }

    /// A pass that went through none of the steps.
    fn unseen(nothing: &'a Applied, problem: Option<&'a Problem>) -> Self {
        Self {
            target: None,
            known: None,
            applied: nothing,
            problem,
        }
    }
}

/// The status after a reconcile.
pub(crate) fn report(
    policy: &PostgresPolicy,
    outcome: &Outcome<'_, PolicyController>,
    now: Timestamp,
) -> Report<PostgresPolicyStatus> {
    build(policy, &Passed::of(outcome), now)
}

pub(crate) fn report_suspended(policy: &PostgresPolicy, now: Timestamp) -> Report<PostgresPolicyStatus> {
    let nothing = Applied::default();
    finish(policy, &Passed::unseen(&nothing, None), now, suspended)
}

/// The status of a policy that is being deleted. One that is cleaned up has nothing more to report.
pub(crate) fn report_cleanup(
    policy: &PostgresPolicy,
    problem: Option<&Problem>,
    now: Timestamp,
) -> Report<PostgresPolicyStatus> {
    build(policy, &Passed::unseen(&Applied::default(), problem), now)
}

fn build(policy: &PostgresPolicy, passed: &Passed<'_>, now: Timestamp) -> Report<PostgresPolicyStatus> {
    finish(policy, passed, now, |before, conditions| {
        match (passed.problem, passed.target) {
            (Some(problem), _) => failed(before, conditions, passed, problem),
            (None, Some(wanted)) => present(before, conditions, wanted, passed, now),
            (None, None) => Report::new(before),
        }
    })
}

/// Adds what every report contains.
fn finish(
    policy: &PostgresPolicy,
    passed: &Passed<'_>,
    now: Timestamp,
    report: impl FnOnce(PostgresPolicyStatus, &mut Conditions) -> Report<PostgresPolicyStatus>,
) -> Report<PostgresPolicyStatus> {
    let before = policy.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(before.conditions(), policy.metadata.generation, now);
    let mut report = report(before.clone(), &mut conditions);
    let requested = policy.annotations().get(annotation::REQUESTED_AT);
    if requested.is_some() {
        report.status.last_attempted_reconcile_at = requested.cloned();
        if passed.problem.is_none() {
            report.status.last_handled_reconcile_at = requested.cloned();
        }
    }
    report.status.conditions = conditions.finish();
    report.events = events::of(&before, &report.status, passed);
    report
}

fn failed(
    mut status: PostgresPolicyStatus,
    conditions: &mut Conditions,
    passed: &Passed<'_>,
    problem: &Problem,
) -> Report<PostgresPolicyStatus> {
    if problem.is(Cause::DatabaseBusy) {
        // Nothing failed: another writer was first, and the retry is soon.
        return Report::new(status);
    }
    conditions.set(condition::READY, Truth::False, problem.reason, &problem.message);
    conditions.set(condition::DEGRADED, Truth::True, problem.reason, &problem.message);
    status.last_error = Some(shorten(&problem.message, LONGEST_ERROR));
    status.transient_failure_count = if problem.class == Class::Transient {
        status.transient_failure_count.saturating_add(1)
    } else {
        0
    };
    if let Some(wanted) = passed.target {
        resumed(conditions);
        password_in_spec(conditions, wanted);
    }
    if problems::is_disconnected(problem) {
        conditions.set(
            condition::CONNECTED,
            Truth::False,
            problem.reason,
            &problem.message,
        );
    }
    if let Some(known) = &passed.known {
        connected(conditions, known);
        owned(&mut status, known);
        if known.rivals.is_empty() {
            uncontested(conditions);
        } else {
            conditions.set(
                condition::CONFLICT,
                Truth::True,
                problems::CONFLICT,
                &problem.message,
            );
        }
    }
    Report::new(status)
}

fn suspended(status: PostgresPolicyStatus, conditions: &mut Conditions) -> Report<PostgresPolicyStatus> {
    let message = "the operator changes nothing until spec.suspend is false";
    conditions.set(condition::PAUSED, Truth::True, "Suspended", message);
    conditions.set(condition::READY, Truth::False, "Suspended", message);
    Report {
        idle_reason: "Suspended",
        ..Report::new(status)
    }
}

fn present(
    mut status: PostgresPolicyStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    passed: &Passed<'_>,
    now: Timestamp,
) -> Report<PostgresPolicyStatus> {
    let requeue_after = Some(wanted.interval);
    let (Some(known), Some(result)) = (&passed.known, &passed.applied.result) else {
        // Everything is unchanged since the last reconcile, so the status is, too.
        return Report {
            requeue_after,
            ..Report::new(status)
        };
    };
    let before = status.clone();
    described(&mut status, wanted, known, result);
    connected(conditions, known);
    let (reason, message) = ready(wanted, result);
    conditions.set(condition::READY, Truth::True, reason, &message);
    conditions.set(condition::DEGRADED, Truth::False, reason, "");
    drifted(conditions, result);
    unmanaged(conditions, result);
    uncontested(conditions);
    resumed(conditions);
    password_in_spec(conditions, wanted);
    let was = |kind| {
        find(&before.conditions, kind)
            .map(|it| (it.status.clone(), it.reason.clone(), it.observed_generation))
    };
    let list = conditions.clone().finish();
    let is =
        |kind| find(&list, kind).map(|it| (it.status.clone(), it.reason.clone(), it.observed_generation));
    let outcome_changed = [condition::READY, condition::DRIFTED]
        .into_iter()
        .any(|kind| was(kind) != is(kind));
    if result.outcome == PlanOutcome::Applied || outcome_changed {
        status.last_successful_reconcile_time = Some(now);
    }
    Report {
        requeue_after,
        ..Report::new(status)
    }
}

/// The fields of the status other than its conditions.
fn described(status: &mut PostgresPolicyStatus, wanted: &Wanted, known: &Known<'_>, result: &PassResult) {
    let was_applied = result.was_applied || (wanted.mode.applies() && applied_before(status, known));
    owned(status, known);
    if result.outcome == PlanOutcome::Applied || was_applied {
        status.applied_database_identity = Some(known.identity.clone());
    }
    status.last_reconcile_mode = Some(wanted.mode);
    status.last_error = None;
    status.transient_failure_count = 0;
    let was_drifted = find(&status.conditions, condition::DRIFTED).is_some_and(|it| it.status == "True");
    // The last applied changes stay in the status until there are new ones.
    if result.outcome != PlanOutcome::InSync || was_drifted || status.change_summary.is_none() {
        status.change_summary = Some(result.summary);
    }
    let (sql, cut) = result
        .sql
        .clone()
        .map_or((None, false), |(sql, cut)| (Some(sql), cut));
    status.planned_sql = sql;
    status.planned_sql_truncated = cut;
    status.plan_warnings = warnings(&result.warnings);
    if let Some(name) = &result.plan {
        status.current_plan_ref = Some(PlanRef { name: name.clone() });
    }
    match &result.fingerprints {
        Some(fingerprints) => status.applied_password_source_versions.clone_from(fingerprints),
        None => status
            .applied_password_source_versions
            .retain(|role, _| wanted.passwords.iter().any(|request| request.role == *role)),
    }
}

/// Whether an earlier version, which did not record where it applied plans, has applied one in this database. Its last changes
/// are in the status until the policy has drifted.
fn applied_before(status: &PostgresPolicyStatus, known: &Known<'_>) -> bool {
    let is = |kind, reason: &str| find(&status.conditions, kind).is_some_and(|it| it.reason == reason);
    status.applied_database_identity.is_none()
        && status.managed_database_identity.as_ref() == Some(&known.identity)
        && is(condition::READY, "Reconciled")
        && is(condition::DRIFTED, "InSync")
        && status.change_summary.is_some_and(|summary| summary.total > 0)
}

fn owned(status: &mut PostgresPolicyStatus, known: &Known<'_>) {
    let desired = &known.content.desired;
    status.managed_database_identity = Some(known.identity.clone());
    status.owned_roles = defined(desired).into_iter().map(str::to_owned).collect();
    status.owned_schemas = desired.schemas.keys().cloned().collect();
}

fn ready(wanted: &Wanted, result: &PassResult) -> (&'static str, String) {
    let plan = result.plan.as_deref().unwrap_or_default();
    let changes = result.summary.total;
    match result.outcome {
        PlanOutcome::InSync | PlanOutcome::Applied if wanted.mode.applies() => {
            ("Reconciled", "the database is as declared".to_owned())
        }
        PlanOutcome::InSync | PlanOutcome::Applied => ("Planned", "the database is as declared".to_owned()),
        PlanOutcome::Observed => (
            "Planned",
            format!("{changes} change(s) would be made; see plan {plan}"),
        ),
        PlanOutcome::Waiting => (
            "Planned",
            format!(
                "{changes} change(s) wait for approval; annotate plan {plan} with pgroles.io/approved=true"
            ),
        ),
        PlanOutcome::Rejected => (
            "Planned",
            format!("plan {plan} was rejected; the database stays as it is"),
        ),
    }
}

/// The first warnings, and how many more there are.
fn warnings(all: &[String]) -> Vec<String> {
    let shown = all.iter().take(SHOWN_WARNINGS);
    let mut shown: Vec<_> = shown.map(|text| shorten(text, LONGEST_WARNING)).collect();
    let more = all.len() - shown.len();
    if more > 0 {
        shown.push(format!("and {more} more: `stanchion roles diff` shows all"));
    }
    shown
}
