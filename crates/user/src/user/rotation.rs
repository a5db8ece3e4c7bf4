//! When a generated password is replaced, and which of two logins is in use.
//!
//! The times are kept in annotations of the credentials Secret, which is written in one piece with the
//! password: after a crash there is no doubt which password they speak of.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stanchion_api::user::RotationStrategy;

use super::target::{RotationWish, Wanted};

/// When the password in the Secret was made.
pub const CHANGED: &str = "db.example.com/password-changed";
/// The request that was acted on when it was made.
pub const REQUEST: &str = "db.example.com/password-request";
/// The login that the password belongs to.
pub const LOGIN: &str = "db.example.com/password-login";

/// The two logins of a role.
pub fn login_names(username: &str) -> [String; 2] {
    [format!("{username}_a"), format!("{username}_b")]
}

/// What is due, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    now: Timestamp,
    changed: Option<Timestamp>,
    due: Option<Timestamp>,
    interval: Option<Duration>,
    grace: Duration,
    active: String,
    other: String,
    dual: bool,
    rotated: bool,
}

/// Reads the clock.
pub fn clock(
    wanted: &Wanted,
    rotation: &RotationWish,
    annotations: Option<&BTreeMap<String, String>>,
    now: Timestamp,
) -> Clock {
    let annotation = |name: &str| annotations.and_then(|all| all.get(name));
    let changed = annotation(CHANGED)
        .and_then(|time| time.parse().ok())
        .or_else(|| annotations.and(wanted.before.password_changed));
    let acted_on = annotation(REQUEST).or(wanted.before.rotation_request.as_ref());
    let by_interval = rotation
        .interval
        .zip(changed)
        .and_then(|(interval, changed)| later(changed, interval));
    let by_date = rotation
        .at
        .filter(|at| changed.is_some_and(|changed| changed < *at));
    let by_request = rotation
        .requested
        .as_ref()
        .filter(|request| changed.is_some() && Some(*request) != acted_on)
        .and_then(|request| request.parse().ok());
    let [a, b] = login_names(&wanted.username);
    let in_use = annotation(LOGIN).or(wanted.before.active_login.as_ref());
    let (active, other) = if in_use == Some(&b) { (b, a) } else { (a, b) };
    Clock {
        now,
        changed,
        due: [by_interval, by_date, by_request].into_iter().flatten().min(),
        interval: rotation.interval,
        grace: rotation.grace,
        active,
        other,
        dual: rotation.strategy == RotationStrategy::DualUser,
        rotated: false,
    }
}

impl Clock {
    /// Whether a new password is due.
    pub fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= self.now)
    }

    /// The clock after a new password was made now. With two logins it belongs to the other one.
    #[must_use]
    pub fn rotated(mut self) -> Self {
        if self.dual && self.changed.is_some() {
            std::mem::swap(&mut self.active, &mut self.other);
        }
        self.changed = Some(self.now);
        self.due = self.interval.and_then(|interval| later(self.now, interval));
        self.rotated = true;
        self
    }

    /// When a password was made in this pass.
    pub fn rotating_since(&self) -> Option<Timestamp> {
        self.rotated.then_some(self.now)
    }

    /// When the password was made.
    pub fn changed(&self) -> Option<Timestamp> {
        self.changed
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.due
    }

    /// The login that the password belongs to.
    pub fn active_login(&self) -> &str {
        &self.active
    }

    /// When the other login ends.
    pub fn grace_ends(&self) -> Option<Timestamp> {
        self.changed
            .and_then(|changed| later(changed, self.grace))
            .filter(|end| self.dual && *end > self.now)
    }

    /// Whether the other login still works.
    pub fn in_grace(&self) -> bool {
        self.grace_ends().is_some()
    }
}

fn later(time: Timestamp, by: Duration) -> Option<Timestamp> {
    time.checked_add(SignedDuration::try_from(by).ok()?).ok()
}
