//! The beginning of a transaction: isolation, the lock, and the settings that keep secrets out of the server's log.

use std::borrow::Cow;
use std::time::Duration;

use super::join;
use crate::lock::{AdvisoryKey, MOMENT};
use crate::session::Timeouts;

/// Turns off every setting that logs a statement's text, as far as the role may: a superuser, or a role with `GRANT SET
/// ON PARAMETER`. For other roles it does nothing, and the server's log may contain verifiers (never passwords). It
/// applies until the end of the transaction.
pub(crate) const GUARDS: &str = "\
SELECT pg_catalog.set_config(name, value, true) FROM (VALUES \
('log_statement', 'none'), ('log_min_messages', 'fatal'), ('log_min_error_statement', 'panic'), \
('log_min_duration_statement', '-1'), ('log_min_duration_sample', '-1'), ('log_transaction_sample_rate', '0'), \
('pg_stat_statements.track_utility', 'off')) AS guard (name, value) \
WHERE pg_catalog.has_parameter_privilege(name, 'SET')";

/// The isolation level of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Sees what was committed before each statement.
    #[default]
    ReadCommitted,
    /// Sees what was committed before the first statement.
    RepeatableRead,
}

/// How a transaction begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct Begin {
    /// The isolation level.
    pub isolation: Isolation,
    /// Whether it only reads.
    pub read_only: bool,
    /// A lock to take before anything else, and to hold until the end. It only orders the sessions that take it: every
    /// login can take it, so a transaction that does not get it within [`crate::lock::MOMENT`] continues without it.
    pub lock: Option<AdvisoryKey>,
    /// How long to wait for that lock, if shorter than that.
    pub lock_wait: Option<Duration>,
    /// Whether secrets will be sent: the settings that keep them out of the server's log are then part of the
    /// beginning, without a separate round trip.
    pub guarded: bool,
}

/// The statements at the beginning of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Prologue {
    statements: Vec<Cow<'static, str>>,
    /// The indexes of the statements that wait for the lock.
    locks: Vec<usize>,
}

impl Prologue {
    pub(crate) fn len(&self) -> usize {
        self.statements.len()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().map(AsRef::as_ref)
    }

    pub(crate) fn text(&self) -> String {
        join(self.lines())
    }

    pub(super) fn locks(&self) -> &[usize] {
        &self.locks
    }

    fn push(&mut self, statement: impl Into<Cow<'static, str>>) {
        self.statements.push(statement.into());
    }

    fn push_lock(&mut self, statement: String) {
        self.locks.push(self.statements.len());
        self.push(statement);
    }
}

impl Begin {
    /// Not the beginning of a transaction, but a complete one: its lock outlives it.
    pub(crate) fn session_lock(key: AdvisoryKey, wait: Duration) -> Prologue {
        let mut prologue = Prologue::default();
        prologue.push("BEGIN");
        prologue.push(format!("SET LOCAL lock_timeout = {}", wait.as_millis()));
        prologue.push_lock(format!("SELECT pg_catalog.pg_advisory_lock({key})"));
        prologue.push("COMMIT");
        prologue
    }

    /// The statements, for a session whose transactions only read by default, or whose server decides that.
    pub(crate) fn prologue(&self, timeouts: &Timeouts, reads_by_default: bool, guards: bool) -> Prologue {
        let mut prologue = Prologue::default();
        let begin = match (self.isolation, self.read_only, reads_by_default) {
            (Isolation::ReadCommitted, false, false) => "BEGIN ISOLATION LEVEL READ COMMITTED",
            (Isolation::ReadCommitted, false, true) => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            (Isolation::ReadCommitted, true, _) => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
            (Isolation::RepeatableRead, false, false) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            (Isolation::RepeatableRead, false, true) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
            (Isolation::RepeatableRead, true, _) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let wait = self.lock_wait.unwrap_or(MOMENT).min(MOMENT);
        match (self.lock, self.isolation) {
            (None, _) => prologue.push(begin),
            (Some(key), Isolation::ReadCommitted) => {
                prologue.push(begin);
                prologue.push(format!("SET LOCAL lock_timeout = {}", wait.as_millis()));
                prologue.push_lock(format!("SELECT pg_catalog.pg_advisory_xact_lock({key})"));
                prologue.push(format!("SET LOCAL lock_timeout = {}", timeouts.lock.as_millis()));
            }
            // The statement that waits for the lock would already take the transaction's snapshot, which would not
            // include the work of the previous holder. So the lock is taken before the transaction, and transferred to
            // it.
            (Some(key), Isolation::RepeatableRead) => {
                prologue = Self::session_lock(key, wait);
                prologue.push(begin);
                prologue.push_lock(format!("SELECT pg_catalog.pg_advisory_xact_lock({key})"));
                prologue.push(format!("SELECT pg_catalog.pg_advisory_unlock({key})"));
            }
        }
        if guards || self.guarded {
            prologue.push(GUARDS);
        }
        prologue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_comes_before_the_snapshot() {
        let key = AdvisoryKey::named("test");
        let begin = Begin {
            isolation: Isolation::RepeatableRead,
            lock: Some(key),
            ..Begin::default()
        };
        let prologue = begin.prologue(&Timeouts::default(), true, false);
        let lines: Vec<_> = prologue.lines().collect();
        let position = |word: &str| lines.iter().position(|line| line.contains(word)).unwrap();
        assert!(position("pg_advisory_lock") < position("REPEATABLE READ"));
        assert!(position("pg_advisory_xact_lock") < position("pg_advisory_unlock"));
    }

    #[test]
    fn the_limit_of_the_lock_holds_for_the_lock_only() {
        let begin = Begin {
            lock: Some(AdvisoryKey::named("test")),
            lock_wait: Some(Duration::from_millis(250)),
            ..Begin::default()
        };
        let text = begin.prologue(&Timeouts::default(), true, false).text();
        let (before, after) = text.split_once("pg_advisory_xact_lock").unwrap();
        assert!(before.contains("lock_timeout = 250"));
        assert!(after.contains("lock_timeout = 10000"));
    }
}
