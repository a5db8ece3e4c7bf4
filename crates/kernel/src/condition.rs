//! Conditions: a list-map by type, whose transition time changes only with the status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::problem::Problem;
use crate::text::shorten;

/// kstatus: the operator is still working towards the spec.
pub const RECONCILING: &str = "Reconciling";
/// kstatus: the object needs a person.
pub const STALLED: &str = "Stalled";

/// Longest condition message that every API server accepts (`metav1.Condition`).
const MESSAGE_LIMIT: usize = 32_768;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Observed to be true.
    True,
    /// Observed to be false.
    False,
    /// Not observed.
    Unknown,
}

impl Truth {
    /// The value in a condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// The conditions of one object while a report is written: the previous ones, with the new ones.
///
/// A condition that is not set again keeps its last value. Its older `observedGeneration` shows that it describes an
/// older spec.
#[derive(Clone, Debug)]
pub struct Conditions {
    list: Vec<Condition>,
    generation: Option<i64>,
    now: Timestamp,
}

impl Conditions {
    /// Starts with the object's current conditions.
    pub fn new(previous: &[Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            list: previous.to_vec(),
            generation,
            now,
        }
    }

    /// Sets one condition.
    pub fn set(&mut self, kind: &str, status: Truth, reason: &str, message: &str) {
        let previous = self.list.iter().find(|condition| condition.type_ == kind);
        let flipped = previous.is_none_or(|condition| condition.status != status.as_str());
        let since = match previous {
            Some(condition) if !flipped => condition.last_transition_time.clone(),
            _ => Time(self.now),
        };
        let condition = Condition {
            type_: kind.into(),
            status: status.as_str().into(),
            reason: reason.into(),
            message: shorten(message, MESSAGE_LIMIT),
            observed_generation: self.generation,
            last_transition_time: since,
        };
        match self.list.iter_mut().find(|condition| condition.type_ == kind) {
            Some(slot) => *slot = condition,
            None => self.list.push(condition),
        }
    }

    /// Removes a condition that no longer applies.
    pub fn clear(&mut self, kind: &str) {
        self.list.retain(|condition| condition.type_ != kind);
    }

    /// Sets `Reconciling` and `Stalled` from the class of a problem; the one that is false has the reason `idle_reason`.
    pub fn set_kstatus(&mut self, problem: Option<&Problem>, idle_reason: &str) {
        let reaction = problem.map(Problem::reaction);
        let values = [
            (RECONCILING, reaction.is_some_and(|reaction| reaction.reconciling)),
            (STALLED, reaction.is_some_and(|reaction| reaction.stalled)),
        ];
        for (kind, value) in values {
            match problem {
                Some(problem) if value => self.set(kind, Truth::True, problem.reason, &problem.message),
                _ => self.set(kind, Truth::False, idle_reason, ""),
            }
        }
    }

    /// The finished list, in a stable order.
    pub fn finish(self) -> Vec<Condition> {
        self.list
    }
}

/// Looks a condition up by its type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether a condition is True and describes this generation.
pub fn is_true(conditions: &[Condition], kind: &str, generation: Option<i64>) -> bool {
    find(conditions, kind)
        .is_some_and(|condition| condition.status == "True" && condition.observed_generation == generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn set(previous: &[Condition], status: Truth, reason: &str, second: i64) -> Vec<Condition> {
        let mut conditions = Conditions::new(previous, Some(1), at(second));
        conditions.set("Ready", status, reason, "m");
        conditions.finish()
    }

    #[test]
    fn the_transition_time_moves_only_on_a_flip() {
        let first = set(&[], Truth::False, "A", 1);
        let same = set(&first, Truth::False, "B", 2);
        assert_eq!(same[0].last_transition_time, Time(at(1)));
        assert_eq!(same[0].reason, "B");
        let flipped = set(&same, Truth::True, "C", 3);
        assert_eq!(flipped[0].last_transition_time, Time(at(3)));
    }

    #[test]
    fn stalled_and_reconciling_follow_the_class() {
        let mut conditions = Conditions::new(&[], Some(1), at(1));
        conditions.set_kstatus(Some(&Problem::permanent("InvalidSpec", "no")), "Settled");
        let list = conditions.finish();
        assert!(is_true(&list, STALLED, Some(1)));
        assert!(!is_true(&list, RECONCILING, Some(1)));
    }

    #[test]
    fn an_old_generation_is_not_believed() {
        let list = set(&[], Truth::True, "A", 1);
        assert!(is_true(&list, "Ready", Some(1)));
        assert!(!is_true(&list, "Ready", Some(2)));
    }
}
