//! Reports an active role.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use stanchion_api::user::{AppliedDatabase, DriftMode, Phase, PlanStatus, PostgresUserStatus, condition};
use stanchion_kernel::Report;
use stanchion_kernel::condition::{Conditions, Truth};

use super::drift::Drift;
use super::{UserOutcome, drift, events, password};
use crate::user::observe::{Current, Observed};
use crate::user::plan::{self, database, ownership};
use crate::user::target::Wanted;

/// The guide's message.
const CREATED: &str = "User created successfully";
const READY: &str = "Postgres user created successfully";
const USER_CREATED: &str = "UserCreated";

/// The status of an active role, after a successful reconcile.
pub(super) fn report(
    mut status: PostgresUserStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    outcome: &UserOutcome<'_>,
    now: Timestamp,
) -> Report<PostgresUserStatus> {
    let Some(Observed::Ensure(current)) = outcome.observed else {
        return Report::new(status);
    };
    let mut events = Vec::new();
    if let Some(sql) = &outcome.applied.shown {
        planned(&mut status, conditions, sql);
    } else {
        let drift = Drift::of(wanted, current, outcome);
        events = events::of(&status, wanted, current, outcome, &drift);
        made(&mut status, conditions, wanted, current, outcome, &drift, now);
    }
    Report {
        events,
        requeue_after: requeue_after(wanted, current, now),
        ..Report::new(status)
    }
}

/// `mode: Plan`: nothing was run, so nothing is ready.
fn planned(status: &mut PostgresUserStatus, conditions: &mut Conditions, sql: &[String]) {
    let count = sql.iter().filter(|line| !line.starts_with("--")).count();
    status.message = Some(format!("{count} statements would be run; see status.plan"));
    status.plan = Some(PlanStatus {
        sql: sql.to_vec(),
        hash: Some(hash(sql)),
    });
    conditions.set(
        condition::READY,
        Truth::False,
        "Planned",
        "mode is Plan: nothing is run",
    );
}

/// Two plans with the same hash contain the same changes. Secrets are redacted, so their salts do not matter.
fn hash(sql: &[String]) -> String {
    use std::fmt::Write as _;
    let mut hasher = Sha256::new();
    for line in sql {
        hasher.update(line.as_bytes());
        hasher.update([0]);
    }
    hasher
        .finalize()
        .iter()
        .take(16)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn made(
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    current: &Current,
    outcome: &UserOutcome<'_>,
    drift: &Drift,
    now: Timestamp,
) {
    let applied = outcome.applied;
    let first = status.created != Some(true);
    if first || !applied.changed.is_empty() || applied.credentials_written {
        status.last_updated = Some(now);
    }
    status.plan = None;
    status.created = Some(true);
    status.created_at.get_or_insert(now);
    status.provisioned_username = Some(wanted.username.clone());
    status.provisioned_instance_ref.clone_from(&wanted.instance);
    status.provisioned_database = Some(wanted.database.clone());
    status.instance = Some(current.server.target.to_string());
    let role = current.catalog.role.as_ref();
    let adopted = ownership::is_adopted(wanted, &current.catalog);
    if let Some(oid) = applied.oid.or(role.map(|role| role.oid)) {
        let marks = &current.catalog.viewer.marks;
        let seal = || ownership::seal(marks, &wanted.identity, &wanted.username, oid);
        status.role_oid = Some(oid.into());
        status.role_seal = (!adopted).then(seal);
    }
    status.adopted = Some(adopted);
    status.credentials_secret_name = wanted.credentials.as_ref().map(|secret| secret.name.clone());
    status.stale_secrets.clear();
    match &applied.grants {
        Some(grants) => status.grants.clone_from(grants),
        // Everything is in sync: the spec's privileges are held, and may be revoked when the spec no longer contains
        // them.
        None if drift.left.is_empty() => status.grants = plan::holdings(wanted, current),
        None => {}
    }
    // Always in the same order: another one would cause a needless write.
    status.grants.sort();
    databases(status, wanted, current, outcome);
    password::report(status, conditions, wanted, current, outcome, drift, now);
    if drift.is_role_gone(current) {
        let message = format!(
            "role {:?} was dropped by hand; create it, or set driftPolicy.mode: Correct",
            wanted.username
        );
        status.phase = Some(Phase::Failed);
        conditions.set(condition::READY, Truth::False, drift::DRIFTED, &message);
        status.message = Some(message);
    } else {
        status.phase = Some(Phase::Ready);
        status.message = Some(CREATED.into());
        conditions.set(condition::READY, Truth::True, USER_CREATED, READY);
    }
    drift.report(status, conditions, now);
}

/// The databases of the spec, and those that the operator created for earlier specs.
fn databases(status: &mut PostgresUserStatus, wanted: &Wanted, current: &Current, outcome: &UserOutcome<'_>) {
    let created = |name: &String| match current.catalog.databases.get(name) {
        Some(facts) => database::is_ours(name, wanted, facts, &current.catalog),
        None => outcome.applied.database_made && *name == wanted.database,
    };
    status
        .databases
        .retain(|known| known.created && !wanted.databases.contains_key(&known.name));
    let named = wanted.databases.keys().map(|name| AppliedDatabase {
        name: name.clone(),
        created: created(name),
    });
    status.databases.extend(named);
    status.databases.sort();
}

/// When to reconcile again: for drift, for a password that is due, for a login whose grace period ends.
fn requeue_after(wanted: &Wanted, current: &Current, now: Timestamp) -> Option<Duration> {
    let until = |time: Option<Timestamp>| {
        time.map(|time| {
            Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(50)
        })
    };
    let drift = (wanted.drift != DriftMode::Ignore).then_some(wanted.drift_interval);
    let passwords = &current.passwords;
    [drift, until(passwords.next), until(passwords.grace_ends)]
        .into_iter()
        .flatten()
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_known_by_its_statements_and_their_order() {
        let plan = |lines: &[&str]| hash(&lines.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(plan(&["a", "b"]), plan(&["a", "b"]));
        assert_ne!(plan(&["a", "b"]), plan(&["b", "a"]));
        assert_ne!(plan(&["ab"]), plan(&["a", "b"]));
        assert_eq!(plan(&[]).len(), 32);
    }
}
