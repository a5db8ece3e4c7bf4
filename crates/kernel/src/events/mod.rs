//! Kubernetes Events: one for each transition, with the newest message, without repetitions.
//!
//! - [`transitions()`] selects the events from the conditions before and after.
//! - [`Recorder`] writes them, and merges repetitions into one Event with a count.
//!
//! Events are best effort: if one cannot be written, the reconcile continues.

mod record;
mod recorder;
mod series;
mod transitions;

use crate::rbac::Rule;

pub use record::{EventRecord, Severity};
pub use recorder::Recorder;
pub use transitions::{TransitionEvent, transitions};

/// The RBAC rules of [`Recorder`] in the namespaces of its objects.
pub fn rules() -> Vec<Rule> {
    vec![Rule::new("events.k8s.io", &["events"], &["create", "patch"])]
}
