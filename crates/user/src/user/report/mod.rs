//! Builds the status.

mod ensure;
mod leftovers;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::PostgresUser;
use stanchion_api::status::Status;
use stanchion_api::user::{DriftMode, PasswordStatus, Phase, PostgresUserStatus, annotation, condition};
use stanchion_kernel::condition::{Conditions, Truth, find};
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Outcome, Problem, Report};

use self::ensure::{DRIFTED, Drift, Facts};
use super::UserController;
use super::observe::Observed;
use super::passwords;
use super::plan::{About, EnsurePlan, Plan, grants};
use super::target::{PasswordRequest, Reason, Wanted};
use crate::server;

type UserOutcome<'a> = Outcome<'a, UserController>;

/// The status after a reconcile.
pub(super) fn report(
    user: &PostgresUser,
    outcome: &UserOutcome<'_>,
    now: Timestamp,
) -> Report<PostgresUserStatus> {
    let mut status = user.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(status.conditions(), user.metadata.generation, now);
    connected(&mut conditions, outcome.problem, server_of(outcome.observed));
    let mut report = if let Some(problem) = outcome.problem {
        fail(user, &mut status, &mut conditions, problem);
        if is_password_pending(outcome, problem, now) {
            let message = format!("the new password is not set yet: {}", problem.message);
            conditions.set(condition::PASSWORD_SYNCED, Truth::False, "Pending", &message);
        }
        Report::new(status)
    } else {
        ensure::report(status, &mut conditions, outcome, now)
    };
    report.status.conditions = conditions.finish();
    let ready = find(&report.status.conditions, condition::READY);
    if ready.and_then(Reason::of) == Some(Reason::NamespaceNotAllowed) {
        // Whatever happens until the permission is back: what was taken with it is no drift.
        report
            .status
            .conditions
            .retain(|condition| condition.type_ != condition::DRIFTED);
    }
    report.requeue_after = requeue_after(user, report.requeue_after);
    report
}

/// The status of a suspended object.
pub(super) fn suspended(user: &PostgresUser, now: Timestamp) -> Report<PostgresUserStatus> {
    let words = "suspended: the operator changes nothing until spec.suspend is false";
    let mut status = PostgresUserStatus {
        phase: Some(Phase::Suspended),
        message: Some(words.into()),
        ..user.status.clone().unwrap_or_default()
    };
    // A user that was never observed only reports that; otherwise the observed conditions stay.
    if find(&status.conditions, condition::READY).is_none() {
        let mut conditions = Conditions::new(&status.conditions, user.metadata.generation, now);
        conditions.set(condition::READY, Truth::Unknown, "Suspended", words);
        status.conditions = conditions.finish();
    }
    Report {
        idle_reason: "Suspended",
        requeue_after: requeue_after(user, None),
        ..Report::new(status)
    }
}

/// How long it takes at most until an operator that is limited to some namespaces sees that an instance of another one
/// has changed: it watches each namespace by itself. An interval of the tenant's, `suspend` or a mistake in the spec do
/// not make it longer.
const GUEST: Duration = Duration::from_mins(10);

/// When to look again: soon enough to see that a permission was withdrawn.
pub(super) fn requeue_after(user: &PostgresUser, own: Option<Duration>) -> Option<Duration> {
    let reference = user.spec.instance_ref.as_ref();
    let home = reference.and_then(|reference| reference.namespace.as_ref());
    let is_guest = home.is_some_and(|home| user.metadata.namespace.as_ref() != Some(home));
    if is_guest {
        return Some(own.map_or(GUEST, |own| own.min(GUEST)));
    }
    own
}

/// The status before the changes are applied: what a deletion must know, if this process does not survive.
pub(super) fn pre_apply_status(
    user: &PostgresUser,
    wanted: &Wanted,
    plan: &Plan,
) -> Option<PostgresUserStatus> {
    match plan {
        Plan::Ensure(plan) if !plan.is_idle() => Some(recorded(user, wanted, plan)),
        Plan::Ensure(_) | Plan::LockOut(..) => None,
    }
}

fn recorded(user: &PostgresUser, wanted: &Wanted, plan: &EnsurePlan) -> PostgresUserStatus {
    let mut status = user.status.clone().unwrap_or_default();
    if status.created != Some(true) {
        status.phase = Some(Phase::Creating);
        status.message = Some("Creating postgres user...".into());
    }
    status.provisioned_username = Some(wanted.username.clone());
    status.provisioned_instance_ref.clone_from(&wanted.instance);
    status
        .provisioned_database
        .get_or_insert_with(|| wanted.database.clone());
    status.instance = Some(plan.server.clone());
    if let Some(active) = &plan.decided.passwords.active {
        status
            .password
            .get_or_insert_default()
            .active_login
            .get_or_insert_with(|| active.clone());
    }
    // Recorded before it is written: an unrecorded Secret would stay, with the password in it.
    let secret = wanted.credentials.as_ref().map(|secret| secret.name.clone());
    if status.credentials_secret_name != secret {
        let known = status.credentials_secret_name.take();
        status.stale_secrets.extend(known);
        status.stale_secrets.retain(|name| Some(name) != secret.as_ref());
        status.credentials_secret_name = secret;
    }
    // Recorded before it is granted: an unrecorded grant would never be revoked.
    status.grants = grants::union(&status.grants, &plan.decided.holdings);
    status
}

/// The server that answered, and how.
fn server_of(observed: Option<&Observed>) -> Option<String> {
    match observed? {
        Observed::Open(current) => Some(format!(
            "{}{}{}",
            current.server.target,
            server::verification(current.security),
            server::log_exposure(&current.catalog.server)
        )),
        Observed::Withdrawn(withdrawn) => Some(withdrawn.server.target.to_string()),
    }
}

/// Whether the database was reached, as far as that is known.
pub(super) fn connected(conditions: &mut Conditions, problem: Option<&Problem>, server: Option<String>) {
    match (problem, server) {
        (Some(problem), server) if is_disconnected(problem, server.is_some()) => {
            conditions.set(
                condition::DATABASE_CONNECTED,
                Truth::False,
                problem.reason,
                &problem.message,
            );
        }
        (_, Some(server)) => {
            let message = format!("connected to {server}");
            conditions.set(condition::DATABASE_CONNECTED, Truth::True, "Connected", &message);
        }
        (_, None) => {}
    }
}

/// Whether this problem means that no query succeeded. A server that sends too much was reached if it answered before.
fn is_disconnected(problem: &Problem, answered: bool) -> bool {
    match problem.cause {
        Cause::Unreachable | Cause::ServerRefused => true,
        Cause::AnswerTooLarge => !answered,
        _ => false,
    }
}

/// What a problem means for the status.
pub(super) fn fail(
    user: &PostgresUser,
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    problem: &Problem,
) {
    let deleting = user.metadata.deletion_timestamp.is_some();
    status.phase = Some(match (deleting, problem.reaction().failed, status.created) {
        (true, ..) => Phase::Deleting,
        (false, true, _) => Phase::Failed,
        // A transient problem does not make a working role failed.
        (false, false, Some(true)) => status
            .phase
            .filter(|phase| *phase == Phase::Ready)
            .unwrap_or(Phase::Creating),
        (false, false, _) => Phase::Creating,
    });
    status.message = Some(problem.message.clone());
    conditions.set(condition::READY, Truth::False, problem.reason, &problem.message);
    let synced = match problem.cause {
        Cause::PasswordSecret => Some(condition::PASSWORD_SYNCED),
        Cause::Privileges => Some(condition::PRIVILEGES_SYNCED),
        _ => None,
    };
    if let Some(synced) = synced {
        conditions.set(synced, Truth::False, problem.reason, &problem.message);
    }
}

/// Whether this reconcile failed to set a password. A password that has no place in a Secret was never made.
fn is_password_pending(outcome: &UserOutcome<'_>, problem: &Problem, now: Timestamp) -> bool {
    let applied = outcome.applied;
    let homeless = applied.decided.is_none() && problem.is(Cause::Conflict);
    match (outcome.target, outcome.observed) {
        (Some(wanted), Some(Observed::Open(current))) if !applied.password_set && !homeless => {
            passwords::is_pending(wanted, &current.source, current.roles(), now)
        }
        _ => false,
    }
}

/// The condition and the record of the password.
fn password(
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    facts: &Facts<'_>,
    drift: &Drift<'_>,
    now: Timestamp,
) {
    let (wanted, passwords) = (facts.wanted, &facts.decided.passwords);
    let (truth, reason, message) = match &passwords.unavailable {
        Some((reason, message)) => (Truth::False, *reason, message.clone()),
        None if drift.concerns(About::Password) => match wanted.drift {
            DriftMode::Ignore => (Truth::Unknown, "Ignored", String::new()),
            DriftMode::Report | DriftMode::Correct => {
                (Truth::False, DRIFTED, "the password was changed by hand".into())
            }
        },
        None => (
            Truth::True,
            "Synced",
            unreadable_request(wanted).unwrap_or_default(),
        ),
    };
    conditions.set(condition::PASSWORD_SYNCED, truth, reason, &message);
    if passwords.unavailable.is_some() {
        return;
    }
    // Set in this reconcile, or in one that was killed before it could report that.
    let set = facts.applied.password_set || status.applied_secret_hash != passwords.fingerprint;
    status.applied_secret_hash.clone_from(&passwords.fingerprint);
    status.rotated_at_request = passwords.request.clone().or(status.rotated_at_request.take());
    let before = status.password.take().unwrap_or_default();
    // The time of a generated password is its creation; that of any other, when it was set.
    let changed = match (&wanted.password, set) {
        (PasswordRequest::Generated(..), _) => passwords.changed,
        (PasswordRequest::From(..), true) => Some(now),
        _ => before.last_changed,
    };
    let retiring = passwords
        .logins()
        .iter()
        .filter(|login| login.catalog.role.is_some() && Some(&login.name) != passwords.active.as_ref());
    status.password = Some(PasswordStatus {
        last_changed: changed,
        next_rotation: passwords.next,
        expires_at: wanted.role.valid_until.or_else(|| expires(facts)),
        active_login: passwords.active.clone(),
        retiring_logins: retiring.map(|login| login.name.clone()).collect(),
    });
}

/// When the password of the role, or of its login in use, expires: an unset `validUntil` leaves what was set before.
fn expires(facts: &Facts<'_>) -> Option<Timestamp> {
    let active = facts.decided.passwords.active.as_ref();
    let logins = &facts.current.logins;
    let login = active.and_then(|active| logins.iter().find(|(name, _)| name == active));
    let catalog = login.map_or(&facts.current.catalog, |(_, catalog)| &**catalog);
    catalog.role.as_ref().and_then(|role| role.valid_until)
}

/// A request that is not a valid time is not fulfilled, and must be reported.
fn unreadable_request(wanted: &Wanted) -> Option<String> {
    let PasswordRequest::Generated(_, rotation) = &wanted.password else {
        return None;
    };
    let request = rotation.requested.as_ref()?;
    request.parse::<Timestamp>().is_err().then(|| {
        format!(
            "the annotation {} is not an RFC 3339 time, so it is ignored",
            annotation::ROTATE_AT
        )
    })
}
