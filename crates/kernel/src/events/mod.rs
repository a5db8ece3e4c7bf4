//! Kubernetes Events that people can rely on: one a change, with the newest words, and never more.
//!
//! - [`transitions`] decides what is worth an event, from the conditions before and after.
//! - [`Recorder`] writes it, and folds repetitions into one Event with a count.
//!
//! An event is a courtesy: when it cannot be written, the reconcile that wanted it goes on.

mod notice;
mod recorder;
mod series;
mod transitions;

pub use notice::{Notice, Severity};
pub use recorder::Recorder;
pub use transitions::{Announcement, transitions};
