//! How it went, as a status.

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::PostgresUser;
use stanchion_api::status::Status;
use stanchion_api::user::{
    DriftMode, DriftStatus, PasswordStatus, Phase, PlanStatus, PostgresUserStatus, condition,
};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::events::Notice;
use stanchion_kernel::problem::postgres::{AUTHENTICATION_FAILED, CONNECTION_FAILED};
use stanchion_kernel::{Outcome, Problem, Report};

use super::UserController;
use super::observe::{Observed, Present};
use super::plan::{self, Change};
use super::target::{Target, Wanted};

/// The guide's words.
const CREATED: &str = "User created successfully";
const READY: &str = "Postgres user created successfully";
const USER_CREATED: &str = "UserCreated";

type Seen<'a> = Outcome<'a, UserController>;

/// The status after a pass.
pub fn report(user: &PostgresUser, outcome: &Seen<'_>, now: Timestamp) -> Report<PostgresUserStatus> {
    let mut status = user.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(status.conditions(), user.metadata.generation, now);
    connected(&mut conditions, outcome);
    let mut report = match (outcome.problem, outcome.target) {
        (Some(problem), _) => failed(user, status, &mut conditions, problem),
        (None, Some(Target::Suspended)) => suspended(status, &mut conditions),
        (None, Some(Target::Present(wanted))) => {
            present(&mut status, &mut conditions, wanted, outcome, now);
            finish(status, wanted, outcome, now)
        }
        // An object whose role is gone has nothing more to say.
        (None, _) => Report::new(status),
    };
    report.status.conditions = conditions.finish();
    report
}

/// The status before the work begins: what a deletion must know, should this pass be the last.
pub fn announce(
    user: &PostgresUser,
    target: &Target,
    observed: &Observed,
    plan: &plan::Plan,
) -> Option<PostgresUserStatus> {
    let mut status = user.status.clone().unwrap_or_default();
    match (target, observed, plan) {
        (Target::Present(wanted), Observed::Present(present), plan::Plan::Make(_)) => {
            if status.created != Some(true) {
                status.phase = Some(Phase::Creating);
                status.message = Some("Creating postgres user...".into());
            }
            status.provisioned_username = Some(wanted.username.clone());
            status
                .provisioned_database
                .get_or_insert_with(|| wanted.database.clone());
            status.instance = Some(present.server.target.to_string());
            if let Some(active) = &present.passwords.active {
                status
                    .password
                    .get_or_insert_default()
                    .active_login
                    .get_or_insert_with(|| active.clone());
            }
            if wanted.create_database.is_some() && !present.catalog.databases.contains_key(&wanted.database) {
                // Recorded before it is made: a database that we made and forgot would never be cleaned up.
                remember_database(&mut status, &wanted.database);
            }
        }
        (Target::Absent(_), Observed::Leaving(_), plan::Plan::Remove(_)) => {
            status.phase = Some(Phase::Deleting);
        }
        _ => return None,
    }
    Some(status)
}

fn remember_database(status: &mut PostgresUserStatus, name: &str) {
    let known = status.databases.iter_mut().find(|database| database.name == name);
    match known {
        Some(database) => database.created = true,
        None => status.databases.push(stanchion_api::user::AppliedDatabase {
            name: name.into(),
            created: true,
        }),
    }
}

/// `DatabaseConnected` is True only when a query came back in this pass, and False only when none did.
fn connected(conditions: &mut Conditions, outcome: &Seen<'_>) {
    let server = match outcome.observed {
        Some(Observed::Present(present)) => Some(present.server.target.to_string()),
        Some(Observed::Leaving(left)) => Some(left.server.target.to_string()),
        _ => None,
    };
    match (outcome.problem, server) {
        (Some(problem), _)
            if [CONNECTION_FAILED, AUTHENTICATION_FAILED, "TlsFailed"].contains(&problem.reason) =>
        {
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

fn failed(
    user: &PostgresUser,
    mut status: PostgresUserStatus,
    conditions: &mut Conditions,
    problem: &Problem,
) -> Report<PostgresUserStatus> {
    let deleting = user.metadata.deletion_timestamp.is_some();
    status.phase = Some(match (deleting, problem.reaction().failed, status.created) {
        (true, ..) => Phase::Deleting,
        (false, true, _) => Phase::Failed,
        // What passes by itself is no reason to call a working role failed.
        (false, false, Some(true)) => status
            .phase
            .filter(|phase| *phase == Phase::Ready)
            .unwrap_or(Phase::Creating),
        (false, false, _) => Phase::Creating,
    });
    status.message = Some(problem.message.clone());
    conditions.set(condition::READY, Truth::False, problem.reason, &problem.message);
    if problem.reason.starts_with("Secret") {
        conditions.set(
            condition::PASSWORD_SYNCED,
            Truth::False,
            problem.reason,
            &problem.message,
        );
    }
    Report::new(status)
}

fn suspended(mut status: PostgresUserStatus, _: &mut Conditions) -> Report<PostgresUserStatus> {
    status.phase = Some(Phase::Suspended);
    status.message = Some("suspended: nothing is touched until spec.suspend is false".into());
    Report {
        settled: "Suspended",
        ..Report::new(status)
    }
}

fn present(
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    outcome: &Seen<'_>,
    now: Timestamp,
) {
    let Some(Observed::Present(present)) = outcome.observed else {
        return;
    };
    let applied = outcome.applied;
    if let Some(sql) = &applied.shown {
        status.message = Some(format!("{} statements would be run; see status.plan", sql.len()));
        status.plan = Some(PlanStatus {
            sql: sql.clone(),
            hash: None,
        });
        conditions.set(
            condition::READY,
            Truth::False,
            "Planned",
            "mode is Plan: nothing is run",
        );
        return;
    }
    status.plan = None;
    let drift = drift(wanted, present, outcome);
    let acted = !applied.changed.is_empty() || applied.credentials_written;
    let first = status.created != Some(true);
    status.created = Some(true);
    status.phase = Some(Phase::Ready);
    status.message = Some(CREATED.into());
    status.provisioned_username = Some(wanted.username.clone());
    status.provisioned_database = Some(wanted.database.clone());
    status.instance = Some(present.server.target.to_string());
    status.created_at.get_or_insert(now);
    if acted || first {
        status.last_updated = Some(now);
    }
    let role = present.catalog.role.as_ref();
    if let Some(oid) = applied.oid.or(role.map(|role| role.oid)) {
        status.role_oid = Some(oid.into());
    }
    status.adopted = adopted(status, wanted, present);
    status.credentials_secret_name = wanted.credentials.as_ref().map(|secret| secret.name.clone());
    if let Some(grants) = &applied.grants {
        status.grants.clone_from(grants);
    }
    databases(status, wanted, outcome);
    password(status, conditions, wanted, present, outcome, now);
    conditions.set(condition::READY, Truth::True, USER_CREATED, READY);
    let (truth, reason) = if drift.is_empty() {
        (Truth::True, "Granted")
    } else {
        (Truth::False, "Drifted")
    };
    conditions.set(condition::PRIVILEGES_SYNCED, truth, reason, &drift.join("; "));
    drifted(status, conditions, wanted, &drift, outcome, now);
}

/// What was changed by hand and is left so.
fn drift(wanted: &Wanted, present: &Present, outcome: &Seen<'_>) -> Vec<String> {
    let corrected = outcome.applied.grants.is_some() || wanted.drift == DriftMode::Correct;
    if corrected || wanted.drift == DriftMode::Ignore {
        return Vec::new();
    }
    let changes: Vec<Change> = plan::differences(wanted, present).unwrap_or_default();
    changes.into_iter().map(|change| change.what).collect()
}

fn drifted(
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    drift: &[String],
    outcome: &Seen<'_>,
    now: Timestamp,
) {
    // A correction after the spec was applied is drift, too: told once, by an event.
    if drift.is_empty() {
        status.drift = None;
        conditions.set(condition::DRIFTED, Truth::False, "InSync", "");
        return;
    }
    let since = status
        .drift
        .as_ref()
        .filter(|before| before.detected == drift)
        .and_then(|before| before.last_checked);
    status.drift = Some(DriftStatus {
        last_checked: Some(since.unwrap_or(now)),
        detected: drift.to_vec(),
    });
    let message = format!("changed by hand: {}", drift.join("; "));
    conditions.set(condition::DRIFTED, Truth::True, "ChangedByHand", &message);
    let _ = (wanted, outcome);
}

fn adopted(status: &PostgresUserStatus, wanted: &Wanted, present: &Present) -> Option<bool> {
    use super::mark::{self, Origin};
    let origin = present
        .catalog
        .role
        .as_ref()
        .map(|role| mark::split(&role.comment).1.map(|mark| mark.origin));
    match origin {
        // It was not there when the pass began: we made it.
        None => Some(false),
        Some(Some(origin)) => Some(origin == Origin::Adopted),
        Some(None) => status.adopted.or(Some(
            wanted.before.username.is_none() || status.created == Some(true),
        )),
    }
}

fn databases(status: &mut PostgresUserStatus, wanted: &Wanted, outcome: &Seen<'_>) {
    for name in wanted.databases.keys() {
        if !status.databases.iter().any(|database| database.name == *name) {
            status.databases.push(stanchion_api::user::AppliedDatabase {
                name: name.clone(),
                created: false,
            });
        }
    }
    for made in &outcome.applied.created {
        remember_database(status, &made.name);
    }
    // A database that we made stays on record: its deletion policy may be Delete.
    status
        .databases
        .retain(|database| database.created || wanted.databases.contains_key(&database.name));
}

fn password(
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    present: &Present,
    outcome: &Seen<'_>,
    now: Timestamp,
) {
    let passwords = &present.passwords;
    if let Some((reason, message)) = &passwords.unavailable {
        conditions.set(condition::PASSWORD_SYNCED, Truth::False, reason, message);
        return;
    }
    conditions.set(condition::PASSWORD_SYNCED, Truth::True, "Synced", "");
    status.applied_secret_hash.clone_from(&passwords.mark);
    status.rotated_at_request = passwords.request.clone().or(status.rotated_at_request.take());
    let set = outcome.applied.password_set;
    let before = status.password.take().unwrap_or_default();
    let changed = passwords
        .changed
        .or(if set { Some(now) } else { before.last_changed });
    let retiring = passwords
        .dual
        .iter()
        .filter(|login| login.enabled && Some(&login.name) != passwords.active.as_ref());
    status.password = Some(PasswordStatus {
        last_changed: changed,
        next_rotation: passwords.next,
        expires_at: wanted.role.valid_until,
        active_login: passwords.active.clone(),
        retiring_logins: retiring.map(|login| login.name.clone()).collect(),
    });
}

/// When to look again, and what to tell beside the conditions.
fn finish(
    status: PostgresUserStatus,
    wanted: &Wanted,
    outcome: &Seen<'_>,
    now: Timestamp,
) -> Report<PostgresUserStatus> {
    let mut report = Report::new(status);
    let Some(Observed::Present(present)) = outcome.observed else {
        return report;
    };
    let until = |time: Option<Timestamp>| {
        time.map(|time| {
            Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(50)
        })
    };
    let drift = (wanted.drift != DriftMode::Ignore).then_some(wanted.drift_interval);
    report.again = [
        drift,
        until(present.passwords.next),
        until(present.passwords.grace_ends),
    ]
    .into_iter()
    .flatten()
    .min();
    if present.passwords.trimmed && outcome.applied.password_set {
        report.notices.push(Notice::warning(
            "PasswordTrimmed",
            "SetPassword",
            "the password in the Secret ends with a line break, which was taken off",
        ));
    }
    let corrected = wanted.before.settled && !outcome.applied.changed.is_empty();
    if corrected && !present.password_changed() && !present.is_rotating() {
        report.notices.push(Notice::warning(
            "DriftCorrected",
            "Correct",
            format!(
                "changed by hand and put right: {}",
                outcome.applied.changed.join("; ")
            ),
        ));
    }
    if present.is_rotating() && outcome.applied.password_set && !wanted.before.grants.is_empty() {
        report.notices.push(Notice::normal(
            "PasswordRotated",
            "Rotate",
            "the password was replaced",
        ));
    }
    report
}
