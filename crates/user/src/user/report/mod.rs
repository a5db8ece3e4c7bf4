//! Builds the status.

mod drift;
mod ensure;
mod events;
mod password;

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::PostgresUser;
use stanchion_api::status::Status;
use stanchion_api::user::{Phase, PostgresUserStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Outcome, Problem, Report};

use super::UserController;
use super::observe::Observed;
use super::plan::{self, grants};
use super::target::Target;
use crate::contact;

type UserOutcome<'a> = Outcome<'a, UserController>;

/// The status after a reconcile.
pub fn report(user: &PostgresUser, outcome: &UserOutcome<'_>, now: Timestamp) -> Report<PostgresUserStatus> {
    let status = user.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(status.conditions(), user.metadata.generation, now);
    connected(&mut conditions, outcome);
    let mut report = match (outcome.problem, outcome.target) {
        (Some(problem), _) => failed(user, status, &mut conditions, problem, outcome),
        (None, Some(Target::Suspended(_))) => suspended(status),
        (None, Some(Target::Ensure(wanted))) => ensure::report(status, &mut conditions, wanted, outcome, now),
        // An object whose role is gone has only this left to report.
        (None, _) => removed(status, outcome),
    };
    report.status.conditions = conditions.finish();
    report.requeue_after = requeue_after(user, report.requeue_after);
    report
}

/// How long it takes at most until an operator that is limited to some namespaces sees that an instance of another one
/// has changed: it watches each namespace by itself. An interval of the tenant's, `suspend` or a mistake in the spec do
/// not make it longer.
const GUEST: Duration = Duration::from_mins(10);

/// When to look again: soon enough to see that a permission was withdrawn.
fn requeue_after(user: &PostgresUser, own: Option<Duration>) -> Option<Duration> {
    let reference = user.spec.instance_ref.as_ref();
    let home = reference.and_then(|reference| reference.namespace.as_ref());
    let is_guest = home.is_some_and(|home| user.metadata.namespace.as_ref() != Some(home));
    if is_guest {
        return Some(own.map_or(GUEST, |own| own.min(GUEST)));
    }
    own
}

/// The status before the changes are applied: what a deletion must know, if this process does not survive.
pub fn pre_apply_status(
    user: &PostgresUser,
    target: &Target,
    observed: &Observed,
    plan: &plan::Plan,
) -> Option<PostgresUserStatus> {
    let mut status = user.status.clone().unwrap_or_default();
    match (target, observed, plan) {
        (Target::Ensure(wanted), Observed::Ensure(current), plan::Plan::Ensure(_)) => {
            if status.created != Some(true) {
                status.phase = Some(Phase::Creating);
                status.message = Some("Creating postgres user...".into());
            }
            status.provisioned_username = Some(wanted.username.clone());
            status.provisioned_instance_ref.clone_from(&wanted.instance);
            status
                .provisioned_database
                .get_or_insert_with(|| wanted.database.clone());
            status.instance = Some(current.server.target.to_string());
            if let Some(active) = &current.passwords.active {
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
            status.grants = grants::union(&status.grants, &plan::holdings(wanted, current));
        }
        (Target::Cleanup(_), Observed::Cleanup(_), plan::Plan::Cleanup(_)) => {
            status.phase = Some(Phase::Deleting);
        }
        _ => return None,
    }
    Some(status)
}

/// `DatabaseConnected` is True only if a query succeeded in this reconcile, and False only if none did.
fn connected(conditions: &mut Conditions, outcome: &UserOutcome<'_>) {
    let server = match outcome.observed {
        Some(Observed::Ensure(current)) => Some(format!(
            "{}{}{}",
            current.server.target,
            contact::reach(current.security),
            contact::log(&current.catalog.server)
        )),
        Some(Observed::Cleanup(state)) => Some(state.server.target.to_string()),
        Some(Observed::Withdrawn(withdrawn)) => Some(withdrawn.server.target.to_string()),
        _ => None,
    };
    match (outcome.problem, server) {
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
        _ => {}
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

fn failed(
    user: &PostgresUser,
    mut status: PostgresUserStatus,
    conditions: &mut Conditions,
    problem: &Problem,
    outcome: &UserOutcome<'_>,
) -> Report<PostgresUserStatus> {
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
    if is_password_pending(outcome) {
        let message = format!("the new password is not set yet: {}", problem.message);
        conditions.set(condition::PASSWORD_SYNCED, Truth::False, "Pending", &message);
    }
    let disarmed = &outcome.applied.disarmed;
    if !disarmed.is_empty() {
        status.disarmed.clone_from(disarmed);
    }
    Report::new(status)
}

/// Whether this reconcile failed to set a password.
fn is_password_pending(outcome: &UserOutcome<'_>) -> bool {
    match outcome.observed {
        Some(Observed::Ensure(current)) => current.passwords.is_changing() && !outcome.applied.password_set,
        _ => false,
    }
}

/// A removed role: an event lists what was disarmed, because it outlives the object.
fn removed(mut status: PostgresUserStatus, outcome: &UserOutcome<'_>) -> Report<PostgresUserStatus> {
    let disarmed = &outcome.applied.disarmed;
    let mut events = Vec::new();
    if !disarmed.is_empty() {
        events.push(EventRecord::warning(
            "ObjectsDisarmed",
            "Remove",
            format!(
                "the role owned objects that run with their owner's privileges; they were disarmed and reassigned: {}",
                disarmed.join(", ")
            ),
        ));
    }
    status.disarmed.clone_from(disarmed);
    Report {
        events,
        ..Report::new(status)
    }
}

fn suspended(mut status: PostgresUserStatus) -> Report<PostgresUserStatus> {
    status.phase = Some(Phase::Suspended);
    status.message = Some("suspended: nothing is touched until spec.suspend is false".into());
    Report {
        idle_reason: "Suspended",
        ..Report::new(status)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// F13, F16: a server that is refused is not connected, whatever an earlier pass said.
    #[test]
    fn a_refused_server_is_not_connected() {
        let disconnected = |cause, answered| {
            is_disconnected(&Problem::human("Any", String::new()).with_cause(cause), answered)
        };
        for cause in [Cause::Unreachable, Cause::ServerRefused] {
            assert!(
                disconnected(cause, false) && disconnected(cause, true),
                "{cause:?}"
            );
        }
        assert!(disconnected(Cause::AnswerTooLarge, false) && !disconnected(Cause::AnswerTooLarge, true));
        assert!(!disconnected(Cause::Other, false));
    }

    /// F19.
    #[test]
    fn a_guest_is_looked_at_again_whatever_its_spec_says() {
        let looks = |reference: Value, own: Option<u64>| {
            let user = json!({
                "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
                "metadata": { "name": "a", "namespace": "ns" },
                "spec": { "username": "a", "database": "d", "instanceRef": reference },
            });
            let user: PostgresUser = serde_json::from_value(user).unwrap();
            requeue_after(&user, own.map(Duration::from_secs)).map(|time| time.as_secs())
        };
        let guest = json!({ "name": "main", "namespace": "bank" });
        assert_eq!(looks(guest.clone(), None), Some(600));
        assert_eq!(looks(guest.clone(), Some(1_000_000)), Some(600));
        assert_eq!(looks(guest, Some(60)), Some(60));
        for at_home in [
            json!(null),
            json!({ "name": "main" }),
            json!({ "name": "main", "namespace": "ns" }),
        ] {
            assert_eq!(looks(at_home, None), None);
        }
    }
}
