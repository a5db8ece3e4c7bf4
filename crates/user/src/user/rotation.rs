//! Decides when a generated password is replaced, and which of two logins is in use.
//!
//! Annotations of the credentials Secret record the times. The Secret is written atomically with the password, so after
//! a crash it is clear which password they belong to.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stanchion_api::user::RotationStrategy;

use super::target::{RotationRequest, Wanted, login_names};

/// When the password in the Secret was generated.
pub(super) const CHANGED: &str = "db.example.com/password-changed";
/// The request that it fulfilled.
pub(super) const REQUEST: &str = "db.example.com/password-request";
/// The login of the password.
pub(super) const LOGIN: &str = "db.example.com/password-login";

/// What is due at one time.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    now: Timestamp,
    settings: RotationRequest,
    changed: Option<Timestamp>,
    acted_on: Option<String>,
    active: String,
    other: String,
    rotated: bool,
}

/// Reads the state from the annotations.
pub(super) fn clock(
    wanted: &Wanted,
    settings: &RotationRequest,
    annotations: Option<&BTreeMap<String, String>>,
    now: Timestamp,
) -> Clock {
    let annotation = |name: &str| annotations.and_then(|all| all.get(name));
    let [a, b] = login_names(&wanted.username);
    let in_use = annotation(LOGIN).or(wanted.before.active_login.as_ref());
    let (active, other) = if in_use == Some(&b) { (b, a) } else { (a, b) };
    Clock {
        now,
        settings: settings.clone(),
        changed: annotation(CHANGED)
            .and_then(|time| time.parse().ok())
            .or_else(|| annotations.and(wanted.before.password_changed)),
        acted_on: annotation(REQUEST)
            .or(wanted.before.rotation_request.as_ref())
            .cloned(),
        active,
        other,
        rotated: false,
    }
}

impl Clock {
    /// When a new password is due: by interval, by date, or by request. Nothing is due before there is a password.
    fn due(&self) -> Option<Timestamp> {
        let changed = self.changed?;
        let by_interval = self
            .settings
            .interval
            .and_then(|interval| later(changed, interval));
        let by_date = self.settings.at.filter(|at| changed < *at);
        let by_request = self
            .settings
            .requested
            .as_ref()
            .filter(|request| Some(*request) != self.acted_on.as_ref())
            .and_then(|request| request.parse().ok());
        [by_interval, by_date, by_request].into_iter().flatten().min()
    }

    /// Whether a new password is due.
    pub(super) fn is_due(&self) -> bool {
        self.due().is_some_and(|due| due <= self.now)
    }

    /// The state after a new password was generated now. With two logins it belongs to the other one.
    #[must_use]
    pub(super) fn rotated(mut self) -> Self {
        if self.is_dual() && self.changed.is_some() {
            std::mem::swap(&mut self.active, &mut self.other);
        }
        let met = |request: &&String| request.parse().is_ok_and(|time: Timestamp| time <= self.now);
        if let Some(request) = self.settings.requested.as_ref().filter(met) {
            self.acted_on = Some(request.clone());
        }
        self.changed = Some(self.now);
        self.rotated = true;
        self
    }

    /// When this reconcile generated a password.
    pub(super) fn rotating_since(&self) -> Option<Timestamp> {
        self.rotated.then_some(self.now)
    }

    /// When the password was generated.
    pub(super) fn changed(&self) -> Option<Timestamp> {
        self.changed
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due()
    }

    /// The last request that was fulfilled. A request for a future time stays open.
    pub(super) fn request(&self) -> Option<String> {
        self.acted_on.clone()
    }

    /// Whether the password belongs to one of two logins.
    pub(super) fn is_dual(&self) -> bool {
        self.settings.strategy == RotationStrategy::DualUser
    }

    /// Whether sessions end with the password that opened them.
    pub(super) fn terminates(&self) -> bool {
        self.settings.terminate_sessions
    }

    /// The login of the password.
    pub(super) fn active_login(&self) -> &str {
        &self.active
    }

    /// When the grace period of the other login ends.
    pub(super) fn grace_ends(&self) -> Option<Timestamp> {
        self.changed
            .and_then(|changed| later(changed, self.settings.grace))
            .filter(|end| self.is_dual() && *end > self.now)
    }

    /// Whether the other login still works.
    pub(super) fn in_grace(&self) -> bool {
        self.grace_ends().is_some()
    }
}

fn later(time: Timestamp, by: Duration) -> Option<Timestamp> {
    time.checked_add(SignedDuration::try_from(by).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn clock(settings: RotationRequest, changed: Option<i64>, now: i64) -> Clock {
        let [active, other] = login_names("app");
        Clock {
            now: at(now),
            settings,
            changed: changed.map(at),
            acted_on: None,
            active,
            other,
            rotated: false,
        }
    }

    #[test]
    fn the_first_of_interval_date_and_request_counts() {
        let settings = RotationRequest {
            interval: Some(Duration::from_secs(100)),
            at: Some(at(50)),
            requested: Some(at(70).to_string()),
            ..RotationRequest::default()
        };
        let due = |changed, now| clock(settings.clone(), Some(changed), now).next();
        assert_eq!(due(0, 0), Some(at(50)));
        // The date has passed; the request is still open.
        assert_eq!(due(50, 50), Some(at(70)));
        let rotated = clock(settings.clone(), Some(50), 70).rotated();
        assert_eq!(
            (rotated.request(), rotated.next()),
            (settings.requested.clone(), Some(at(170)))
        );
    }

    #[test]
    fn a_request_for_later_is_not_forgotten() {
        let settings = RotationRequest {
            requested: Some(at(90).to_string()),
            ..RotationRequest::default()
        };
        let made = clock(settings, None, 10).rotated();
        assert_eq!((made.request(), made.next()), (None, Some(at(90))));
        assert!(!made.is_due());
    }

    #[test]
    fn nothing_is_due_without_a_reason() {
        assert_eq!(clock(RotationRequest::default(), Some(0), 9).next(), None);
        let nonsense = RotationRequest {
            requested: Some("tomorrow".into()),
            ..RotationRequest::default()
        };
        assert_eq!(clock(nonsense, Some(0), 9).next(), None);
    }

    #[test]
    fn two_logins_take_turns_and_the_old_one_has_its_grace() {
        let settings = RotationRequest {
            strategy: RotationStrategy::DualUser,
            grace: Duration::from_secs(10),
            ..RotationRequest::default()
        };
        let first = clock(settings.clone(), None, 0).rotated();
        assert_eq!(first.active_login(), "app_a");
        let second = Clock {
            rotated: false,
            now: at(5),
            ..first
        }
        .rotated();
        assert_eq!(second.active_login(), "app_b");
        assert_eq!(second.grace_ends(), Some(at(15)));
        let later = Clock {
            now: at(15),
            ..second
        };
        assert!(!later.in_grace());
    }
}
