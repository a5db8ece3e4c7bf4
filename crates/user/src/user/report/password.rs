//! Reports the state of the password.

use jiff::Timestamp;
use stanchion_api::user::{DriftMode, PasswordStatus, PostgresUserStatus, annotation, condition};
use stanchion_kernel::condition::{Conditions, Truth};

use super::UserOutcome;
use super::drift::{DRIFTED, Drift};
use crate::user::observe::Current;
use crate::user::plan::About;
use crate::user::target::{PasswordRequest, Wanted};

pub(super) fn report(
    status: &mut PostgresUserStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    current: &Current,
    outcome: &UserOutcome<'_>,
    drift: &Drift,
    now: Timestamp,
) {
    let passwords = &current.passwords;
    let (truth, reason, message) = match &passwords.unavailable {
        Some((reason, message)) => (Truth::False, *reason, message.clone()),
        None if drift.concerns(About::Password) && wanted.drift == DriftMode::Ignore => {
            (Truth::Unknown, "Ignored", String::new())
        }
        None if drift.concerns(About::Password) => {
            (Truth::False, DRIFTED, "the password was changed by hand".into())
        }
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
    let set = outcome.applied.password_set || status.applied_secret_hash != passwords.fingerprint;
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
        expires_at: wanted.role.valid_until,
        active_login: passwords.active.clone(),
        retiring_logins: retiring.map(|login| login.name.clone()).collect(),
    });
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
