//! Events besides those of conditions, each sent once.

use stanchion_api::user::PostgresUserStatus;
use stanchion_kernel::events::Notice;

use super::Seen;
use super::drift::Drift;
use crate::user::observe::Present;
use crate::user::plan::ownership;
use crate::user::target::Wanted;

pub(super) fn of(
    status: &PostgresUserStatus,
    wanted: &Wanted,
    present: &Present,
    outcome: &Seen<'_>,
    drift: &Drift,
) -> Vec<Notice> {
    let (passwords, applied) = (&present.passwords, outcome.applied);
    let mut notices = Vec::new();
    if status.created != Some(true) && ownership::is_adopted(wanted, &present.catalog) {
        notices.push(Notice::normal(
            "RoleAdopted",
            "Adopt",
            format!(
                "role {:?} was there already; it is not dropped with this object",
                wanted.username
            ),
        ));
    }
    if passwords.trimmed && applied.password_set {
        notices.push(Notice::warning(
            "PasswordTrimmed",
            "SetPassword",
            "the password in the Secret ends with a line break, which was taken off",
        ));
    }
    if !drift.corrected.is_empty() {
        notices.push(Notice::warning(
            "DriftCorrected",
            "Correct",
            format!("changed by hand and put right: {}", drift.corrected.join("; ")),
        ));
    }
    if passwords.rotated.is_some() && applied.password_set && wanted.before.password_changed.is_some() {
        notices.push(Notice::normal(
            "PasswordRotated",
            "Rotate",
            "the password was replaced",
        ));
    }
    let acted = !applied.changed.is_empty();
    for login in passwords.retiring().filter(|_| acted) {
        notices.push(Notice::normal(
            "LoginRetired",
            "Rotate",
            format!("login {:?} can no longer log in", login.name),
        ));
    }
    notices
}
