//! Reports an active role after a successful reconcile: its state, its drift, and the events besides those of conditions.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use stanchion_api::user::{
    AppliedDatabase, DriftMode, DriftStatus, Phase, PlanStatus, PostgresUserStatus, condition,
};
use stanchion_kernel::Report;
use stanchion_kernel::condition::{Conditions, Truth, find};
use stanchion_kernel::events::EventRecord;

use super::{UserOutcome, leftovers, password};
use crate::user::apply::Applied;
use crate::user::guards;
use crate::user::observe::{Current, Observed};
use crate::user::passwords::Passwords;
use crate::user::plan::{About, Change, Decided};
use crate::user::target::{Reason, Wanted};

/// The guide's message.
const CREATED: &str = "User created successfully";
const READY: &str = "Postgres user created successfully";
const USER_CREATED: &str = "UserCreated";

/// What a successful reconcile reports about.
pub(super) struct Facts<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) current: &'a Current,
    pub(super) decided: &'a Decided,
    pub(super) applied: &'a Applied,
}

/// The status of an active role, after a successful reconcile.
pub(super) fn report(
    mut status: PostgresUserStatus,
    conditions: &mut Conditions,
    outcome: &UserOutcome<'_>,
    now: Timestamp,
) -> Report<PostgresUserStatus> {
    let applied = outcome.applied;
    // A reconcile without a problem has all of them.
    let (Some(wanted), Some(Observed::Open(current)), Some(decided)) =
        (outcome.target, outcome.observed, &applied.decided)
    else {
        return Report::new(status);
    };
    let facts = Facts {
        wanted,
        current,
        decided,
        applied,
    };
    let mut sent = Vec::new();
    if let Some(sql) = &applied.shown {
        planned(&mut status, conditions, sql);
    } else {
        let drift = Drift::of(&facts);
        sent = events(&status, &facts, &drift);
        made(&mut status, conditions, &facts, &drift, now);
    }
    Report {
        events: sent,
        requeue_after: requeue_after(wanted, &decided.passwords, now),
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
pub(super) fn hash(sql: &[String]) -> String {
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
    facts: &Facts<'_>,
    drift: &Drift<'_>,
    now: Timestamp,
) {
    let Facts {
        wanted,
        current,
        decided,
        applied,
    } = facts;
    let first = status.created != Some(true);
    if first || !applied.changed.is_empty() || !applied.written.is_empty() {
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
    let adopted = guards::is_adopted(wanted, &current.catalog);
    if let Some(oid) = applied.oid.or(role.map(|role| role.oid)) {
        let marks = &current.catalog.viewer.marks;
        let seal = || guards::seal(marks, &wanted.identity, &wanted.username, oid);
        status.role_oid = Some(oid.into());
        status.role_seal = (!adopted).then(seal);
    }
    status.adopted = Some(adopted);
    status.credentials_secret_name = wanted.credentials.as_ref().map(|secret| secret.name.clone());
    let secret = status.credentials_secret_name.as_ref();
    status.stale_secrets = if decided.passwords.keeps_secrets() {
        let known = wanted.before.credentials_secrets.iter();
        known.filter(|known| Some(*known) != secret).cloned().collect()
    } else {
        Vec::new()
    };
    match &applied.grants {
        Some(grants) => status.grants.clone_from(grants),
        // Everything is in sync: the spec's privileges are held, and may be revoked when the spec no longer contains
        // them.
        None if decided.left.is_empty() => status.grants.clone_from(&decided.holdings),
        None => {}
    }
    // Always in the same order: another one would cause a needless write.
    status.grants.sort();
    databases(status, facts);
    password(status, conditions, facts, drift, now);
    if drift.is_role_gone() {
        let message = format!(
            "role {:?} was dropped by hand; create it, or set driftPolicy.mode: Correct",
            wanted.username
        );
        status.phase = Some(Phase::Failed);
        conditions.set(condition::READY, Truth::False, DRIFTED, &message);
        status.message = Some(message);
    } else {
        status.phase = Some(Phase::Ready);
        status.message = Some(CREATED.into());
        conditions.set(condition::READY, Truth::True, USER_CREATED, READY);
    }
    drift.report(status, conditions, now);
}

/// The databases of the spec, and those that the operator created for earlier specs.
fn databases(status: &mut PostgresUserStatus, facts: &Facts<'_>) {
    let (wanted, catalog) = (facts.wanted, &facts.current.catalog);
    let created = |name: &String| match catalog.databases.get(name) {
        Some(facts) => guards::is_database_of(name, wanted, facts, catalog),
        None => facts.applied.database_made && *name == wanted.database,
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
fn requeue_after(wanted: &Wanted, passwords: &Passwords, now: Timestamp) -> Option<Duration> {
    let until = |time: Option<Timestamp>| {
        time.map(|time| {
            Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(50)
        })
    };
    let drift = (wanted.drift != DriftMode::Ignore).then_some(wanted.drift_interval);
    [drift, until(passwords.next), until(passwords.grace_ends)]
        .into_iter()
        .flatten()
        .min()
}

/// The reason of a condition that is not True because of drift.
pub(super) const DRIFTED: &str = "Drifted";

pub(super) struct Drift<'a> {
    mode: DriftMode,
    /// Detected, and left.
    left: &'a [Change],
    /// Detected and corrected, in the terms of the spec.
    corrected: &'a [String],
    /// What the spec does not ask for, and the operator leaves.
    unset: Vec<String>,
    /// Powers that the instance does not allow, and the administrator cannot take.
    forbidden: Vec<String>,
    /// Whether the role itself is missing, and stays so.
    role_gone: bool,
}

impl<'a> Drift<'a> {
    fn of(facts: &Facts<'a>) -> Self {
        let (wanted, decided) = (facts.wanted, facts.decided);
        // Before the spec was applied there is no drift; and a new password is not drift.
        let drifting = wanted.before.converged && !decided.passwords.is_moving();
        Self {
            mode: wanted.drift,
            left: &decided.left,
            corrected: if drifting { &facts.applied.changed } else { &[] },
            unset: leftovers::unset(wanted, facts.current),
            forbidden: leftovers::forbidden(wanted, facts.current),
            role_gone: !decided.left.is_empty() && facts.current.catalog.role.is_none(),
        }
    }

    fn is_role_gone(&self) -> bool {
        self.role_gone
    }

    /// Whether something of this kind differs from the spec.
    pub(super) fn concerns(&self, about: About) -> bool {
        self.left.iter().any(|change| change.about == about)
    }

    fn report(&self, status: &mut PostgresUserStatus, conditions: &mut Conditions, now: Timestamp) {
        let (truth, reason) = match (self.concerns(About::Privileges), self.mode) {
            (false, _) if !self.forbidden.is_empty() => (Truth::False, "InsufficientPrivilege"),
            (false, _) => (Truth::True, "Granted"),
            (true, DriftMode::Ignore) => (Truth::Unknown, "Ignored"),
            (true, _) => (Truth::False, DRIFTED),
        };
        let mut privileges = self.words(|change| change.about == About::Privileges);
        privileges.extend(self.forbidden.iter().chain(&self.unset).cloned());
        conditions.set(
            condition::PRIVILEGES_SYNCED,
            truth,
            reason,
            &privileges.join("; "),
        );
        self.drifted(status, conditions, now);
    }

    fn drifted(&self, status: &mut PostgresUserStatus, conditions: &mut Conditions, now: Timestamp) {
        if self.mode == DriftMode::Ignore {
            status.drift = None;
            let message = "drift detection is disabled (driftPolicy.mode: Ignore)";
            conditions.set(condition::DRIFTED, Truth::Unknown, "Ignored", message);
            return;
        }
        let corrected = |conditions: &mut Conditions, message: &str| {
            conditions.set(
                condition::DRIFTED,
                Truth::False,
                Reason::Corrected.as_str(),
                message,
            );
        };
        let left = self.words(|_| true);
        if !left.is_empty() {
            record(status, &left, now, true);
            let message = format!("changed by hand: {}", left.join("; "));
            conditions.set(condition::DRIFTED, Truth::True, "ChangedByHand", &message);
        } else if !self.corrected.is_empty() {
            record(status, self.corrected, now, false);
            let message = format!("changed by hand and corrected: {}", self.corrected.join("; "));
            corrected(conditions, &message);
        } else {
            let last = find(&status.conditions, condition::DRIFTED);
            // The last correction stays in the status until the spec changes.
            let kept = last.filter(|last| {
                Reason::of(last) == Some(Reason::Corrected)
                    && last.observed_generation == status.observed_generation
            });
            if let Some(message) = kept.map(|last| last.message.clone()) {
                corrected(conditions, &message);
            } else {
                status.drift = None;
                conditions.set(condition::DRIFTED, Truth::False, "InSync", "");
            }
        }
    }

    fn words(&self, chosen: impl Fn(&Change) -> bool) -> Vec<String> {
        let chosen = self.left.iter().filter(|change| chosen(change));
        chosen.map(|change| change.what.clone()).collect()
    }
}

/// `since` keeps the time when the same drift was first detected.
fn record(status: &mut PostgresUserStatus, detected: &[String], now: Timestamp, since: bool) {
    let before = status
        .drift
        .as_ref()
        .filter(|before| since && before.detected == detected);
    let found = before.and_then(|before| before.last_checked).unwrap_or(now);
    status.drift = Some(DriftStatus {
        last_checked: Some(found),
        detected: detected.to_vec(),
    });
}

/// The events of a reconcile.
fn events(status: &PostgresUserStatus, facts: &Facts<'_>, drift: &Drift<'_>) -> Vec<EventRecord> {
    let (wanted, applied) = (facts.wanted, facts.applied);
    let passwords = &facts.decided.passwords;
    let mut events = Vec::new();
    if status.created != Some(true) && guards::is_adopted(wanted, &facts.current.catalog) {
        events.push(EventRecord::normal(
            "RoleAdopted",
            "Adopt",
            format!(
                "role {:?} existed already; it is not dropped with this object",
                wanted.username
            ),
        ));
    }
    if passwords.trimmed && applied.password_set {
        events.push(EventRecord::warning(
            "PasswordTrimmed",
            "SetPassword",
            "the password in the Secret ends with a line break, which the operator removed",
        ));
    }
    if !drift.corrected.is_empty() {
        events.push(EventRecord::warning(
            "DriftCorrected",
            "Correct",
            format!("changed by hand and corrected: {}", drift.corrected.join("; ")),
        ));
    }
    if passwords.rotated.is_some() && applied.password_set && wanted.before.password_changed.is_some() {
        events.push(EventRecord::normal(
            "PasswordRotated",
            "Rotate",
            "the password was replaced",
        ));
    }
    let acted = !applied.changed.is_empty();
    for login in passwords.retiring().filter(|_| acted) {
        events.push(EventRecord::normal(
            "LoginRetired",
            "Rotate",
            format!("login {:?} can no longer log in", login.name),
        ));
    }
    events
}
