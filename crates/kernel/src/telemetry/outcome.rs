//! How the reconciles of one object end: counted each time, said aloud only when it changes.
//!
//! An object that fails for the same reason every minute is one line in the log, not a thousand; the same transition
//! moves the object from one `stanchion_problems` gauge to another, so the log and the gauge cannot disagree.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tracing::{debug, info};

use super::metrics::ControllerMetrics;

/// How one reconcile ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// The class of the problem, if there is one.
    pub class: Option<&'static str>,
    /// A CamelCase word.
    pub reason: &'static str,
    /// For a person.
    pub message: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    class: Option<&'static str>,
    reason: &'static str,
    message: u64,
}

/// What was last said about one object. Kept for as long as the object is there; dropped with it.
#[derive(Debug)]
pub struct OutcomeLog {
    metrics: ControllerMetrics,
    last: Option<Said>,
}

impl OutcomeLog {
    /// Nothing was said yet.
    pub fn new(metrics: ControllerMetrics) -> Self {
        Self { metrics, last: None }
    }

    /// Counts the ending and writes its line. Call it inside the span of the reconcile.
    pub fn record(&mut self, ending: &Ending<'_>) {
        let Ending {
            class,
            reason,
            message,
        } = *ending;
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        let said = Said {
            class,
            reason,
            message: hasher.finish(),
        };
        self.metrics.outcome(class, reason);
        self.metrics.moved(self.last.and_then(|last| last.class), class);
        if self.last.replace(said) == Some(said) {
            debug!(class, reason, "{message}");
        } else {
            info!(class, reason, "{message}");
        }
    }
}

impl Drop for OutcomeLog {
    fn drop(&mut self) {
        self.metrics.moved(self.last.and_then(|last| last.class), None);
    }
}
