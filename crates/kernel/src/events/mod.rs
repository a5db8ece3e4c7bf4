//! Kubernetes Events: one for each transition, with the newest message, without repetitions.
//!
//! - [`transitions()`] selects the events from the conditions before and after.
//! - [`Recorder`] writes them, and merges repetitions into one Event with a count.
//!
//! Events are best effort: if one cannot be written, the reconcile continues.

mod recorder;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub use recorder::Recorder;

use crate::rbac::Rule;
use crate::text::shorten;

/// The API's limits in bytes: the API server rejects an event with a longer text.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// The RBAC rules of [`Recorder`] in the namespaces of its objects.
pub fn rules() -> Vec<Rule> {
    vec![Rule::new("events.k8s.io", &["events"], &["create", "patch"])]
}

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Expected.
    Normal,
    /// Needs attention.
    Warning,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventRecord {
    /// Normal or Warning.
    pub kind: Severity,
    /// The reason, in one `CamelCase` word.
    pub reason: String,
    /// What the controller did, in one `CamelCase` word.
    pub action: String,
    /// The message for people.
    pub note: String,
}

impl EventRecord {
    /// A Normal event.
    pub fn normal(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Normal,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
        }
    }

    /// A Warning event.
    pub fn warning(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Warning,
            ..Self::normal(reason, action, note)
        }
    }

    /// The notice, shortened to the API's limits.
    pub(super) fn shortened(&self) -> Self {
        Self {
            kind: self.kind,
            reason: shorten(&self.reason, MAX_WORD),
            action: shorten(&self.action, MAX_WORD),
            note: shorten(&self.note, MAX_NOTE),
        }
    }
}

/// One row of a controller's table: the event for `condition` becoming `status`. Transitions without a row cause no
/// event.
#[derive(Clone, Copy, Debug)]
pub struct TransitionEvent {
    /// The condition's type.
    pub condition: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The type of the event.
    pub kind: Severity,
    /// The event's action.
    pub action: &'static str,
}

/// The events for the transitions from `old` to `new`: for every condition in the table whose status or reason changed,
/// or which is new. A change of the message or the time alone causes no event. It compares the stored conditions with the
/// new ones, not with the memory of this process, so a restart sends no events.
pub fn transitions(old: &[Condition], new: &[Condition], table: &[TransitionEvent]) -> Vec<EventRecord> {
    new.iter()
        .filter(|now| {
            !old.iter()
                .any(|was| was.type_ == now.type_ && was.status == now.status && was.reason == now.reason)
        })
        .filter_map(|now| {
            let row = table
                .iter()
                .find(|row| row.condition == now.type_ && row.status == now.status)?;
            Some(EventRecord {
                kind: row.kind,
                reason: now.reason.clone(),
                action: row.action.to_owned(),
                note: now.message.clone(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const TABLE: &[TransitionEvent] = &[
        TransitionEvent {
            condition: "Ready",
            status: "True",
            kind: Severity::Normal,
            action: "Reconcile",
        },
        TransitionEvent {
            condition: "Ready",
            status: "False",
            kind: Severity::Warning,
            action: "Reconcile",
        },
        TransitionEvent {
            condition: "Stalled",
            status: "True",
            kind: Severity::Warning,
            action: "Validate",
        },
    ];

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
            observed_generation: None,
        }
    }

    #[test]
    fn only_status_and_reason_are_news() {
        let down = condition("Ready", "False", "DatabaseDown", "connection refused (attempt 1)");
        let cases = [
            ("the same", down.clone(), 0),
            (
                "another message",
                condition("Ready", "False", "DatabaseDown", "connection refused (attempt 2)"),
                0,
            ),
            (
                "another reason",
                condition("Ready", "False", "NoPrivilege", "grant CREATEROLE"),
                1,
            ),
            (
                "another status",
                condition("Ready", "True", "DatabaseDown", "up"),
                1,
            ),
            (
                "a status without a row",
                condition("Ready", "Unknown", "Checking", ""),
                0,
            ),
        ];
        for (case, new, expected) in cases {
            assert_eq!(
                transitions(std::slice::from_ref(&down), &[new], TABLE).len(),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn the_time_and_the_observed_generation_are_not_news() {
        let old = condition("Ready", "True", "Ready", "ready");
        let new = Condition {
            last_transition_time: Time(jiff::Timestamp::MAX),
            observed_generation: Some(7),
            ..old.clone()
        };
        assert!(transitions(&[old], &[new], TABLE).is_empty());
    }

    #[test]
    fn a_new_condition_is_told_in_the_words_of_the_condition() {
        let new = [
            condition("Stalled", "False", "Progressing", "fine"),
            condition("Ready", "True", "Ready", "role app is ready"),
            condition("Connected", "True", "Connected", "not in the table"),
        ];
        let record = EventRecord {
            kind: Severity::Normal,
            reason: "Ready".into(),
            action: "Reconcile".into(),
            note: "role app is ready".into(),
        };
        assert_eq!(transitions(&[], &new, TABLE), [record]);
    }
}
