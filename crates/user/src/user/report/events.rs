//! Events besides those of conditions, each sent once.

use stanchion_api::user::PostgresUserStatus;
use stanchion_kernel::events::EventRecord;

use super::UserOutcome;
use super::drift::Drift;
use crate::user::observe::Current;
use crate::user::plan::ownership;
use crate::user::target::Wanted;

pub(super) fn of(
    status: &PostgresUserStatus,
    wanted: &Wanted,
    current: &Current,
    outcome: &UserOutcome<'_>,
    drift: &Drift,
) -> Vec<EventRecord> {
    let (passwords, applied) = (&current.passwords, outcome.applied);
    let mut events = Vec::new();
    if status.created != Some(true) && ownership::is_adopted(wanted, &current.catalog) {
        events.push(EventRecord::normal(
            "RoleAdopted",
            "Adopt",
            format!(
                "role {:?} was there already; it is not dropped with this object",
                wanted.username
            ),
        ));
    }
    if passwords.trimmed && applied.password_set {
        events.push(EventRecord::warning(
            "PasswordTrimmed",
            "SetPassword",
            "the password in the Secret ends with a line break, which was taken off",
        ));
    }
    if !drift.corrected.is_empty() {
        events.push(EventRecord::warning(
            "DriftCorrected",
            "Correct",
            format!("changed by hand and put right: {}", drift.corrected.join("; ")),
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
