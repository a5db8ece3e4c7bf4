//! Kubernetes Events that people can rely on: one a change, with the newest words, and never more.
//!
//! - [`transitions()`] decides what is worth an event, from the conditions before and after.
//! - [`Recorder`] writes it, and folds repetitions into one Event with a count.
//!
//! An event is a courtesy: when it cannot be written, the reconcile that wanted it goes on.

mod notice;
mod recorder;
mod series;
mod transitions;

use crate::rbac::Rule;

pub use notice::{Notice, Severity};
pub use recorder::Recorder;
pub use transitions::{Announcement, transitions};

/// What [`Recorder`] may do in the namespaces of the objects it tells about.
pub fn rules() -> Vec<Rule> {
    vec![Rule::new("events.k8s.io", &["events"], &["create", "patch"])]
}
