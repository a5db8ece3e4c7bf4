//! Counts statements, for metrics.

use std::time::Duration;

/// The statements of one round trip.
#[derive(Debug, Clone, Copy)]
pub struct Statements<'a> {
    /// `host:port`.
    pub server: &'a str,
    /// The database.
    pub database: &'a str,
    /// Whether they only read.
    pub reading: bool,
    /// The number of statements, including the transaction's own (BEGIN, COMMIT, settings).
    pub count: usize,
    /// The time from sending to the last answer.
    pub elapsed: Duration,
    /// Whether all of them succeeded.
    pub succeeded: bool,
    /// Whether the server answered: they succeeded, or it returned an error.
    pub answered: bool,
}

/// Observes every statement that a session sends.
pub trait StatementObserver: Send + Sync {
    /// Called once per round trip, after its answer or its failure.
    fn observe(&self, statements: &Statements<'_>);

    /// Called when the caller stops waiting for an answer after this time: its own deadline ended.
    fn abandoned(&self, _after: Duration) {}
}

/// Ignores everything.
impl StatementObserver for () {
    fn observe(&self, _: &Statements<'_>) {}
}
