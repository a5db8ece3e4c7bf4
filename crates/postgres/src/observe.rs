//! Counting statements, for metrics.

use std::time::Duration;

/// What was sent to a server in one go.
#[derive(Debug, Clone, Copy)]
pub struct Statements<'a> {
    /// `host:port`.
    pub server: &'a str,
    /// The database.
    pub database: &'a str,
    /// Whether they only looked.
    pub reading: bool,
    /// How many statements, the transaction's own (BEGIN, COMMIT, settings) included.
    pub count: usize,
    /// From sending to the last answer.
    pub elapsed: Duration,
    /// Whether all of them succeeded.
    pub succeeded: bool,
}

/// Learns of every statement that a session sends.
pub trait StatementObserver: Send + Sync {
    /// Called once a round trip, after its answer or its failure.
    fn observe(&self, statements: &Statements<'_>);
}

/// Watches nothing.
impl StatementObserver for () {
    fn observe(&self, _: &Statements<'_>) {}
}
