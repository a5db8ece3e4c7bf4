//! Runs many statements in one transaction and one round trip, and identifies the one that fails.
//!
//! The whole transaction is one message of the simple query protocol. The server runs it statement by statement and
//! stops at the first failure, so the number of its answers identifies the failed statement, and nothing after it can
//! have run: not even if BEGIN itself failed. Each [`Statement`] must therefore be exactly one statement.
//!
//! A batch with secrets takes a second round trip. The settings that keep its text out of the server's log must be in
//! effect before the text arrives and until it is processed, and any error reverts them. So the batch waits for them,
//! and COMMIT is a separate message: the server logs the duration of a message, with its text, when the message ends.

mod begin;

pub use begin::{Begin, Isolation};
pub(crate) use begin::{GUARDS, Prologue};

use crate::connection_config::ConnectionConfig;
use crate::error::{Error, FailedStatement, Kind, Secrets};
use crate::fence;
use crate::lock::AdvisoryKey;
use crate::session::{Answer, Lost, ReadSession, Session};
use crate::sqlstate::Doing;
use crate::statement::Statement;

/// Longer statements are cut in error messages, which appear in conditions and events.
const MAX_SHOWN: usize = 500;

/// Statements that succeed or fail together.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// How the transaction begins.
    pub begin: Begin,
    /// What it does.
    pub statements: Vec<Statement>,
}

impl Batch {
    /// A batch without a lock.
    pub fn new(statements: Vec<Statement>) -> Self {
        Self {
            begin: Begin::default(),
            statements,
        }
    }

    /// Takes this lock first.
    #[must_use]
    pub fn locked(mut self, lock: AdvisoryKey) -> Self {
        self.begin.lock = Some(lock);
        self
    }
}

impl Session {
    /// Runs the batch. Returns the number of affected rows of each statement.
    pub async fn apply(&mut self, batch: &Batch) -> Result<Vec<u64>, Error> {
        fence::check(self.target())?;
        let Batch { begin, statements } = batch;
        match self.apply_once(begin, statements).await {
            Err(error) if begin.lock.is_some() && error.kind() == Kind::Contended => {
                self.apply_once(&self.disregard(begin), statements).await
            }
            result => result,
        }
    }

    async fn apply_once(&mut self, begin: &Begin, statements: &[Statement]) -> Result<Vec<u64>, Error> {
        let secret = statements.iter().any(Statement::is_secret);
        let prologue = self.prologue(begin, secret);
        if !secret {
            return self.finish(&prologue, statements, true).await;
        }
        let answer = self.send(&[&prologue.text()], prologue.len()).await;
        if let Some(lost) = answer.lost {
            let error = self.not_begun(&prologue, answer.affected.len(), lost);
            self.roll_back().await;
            return Err(error);
        }
        self.finish(&Prologue::default(), statements, true).await
    }
}

impl ReadSession {
    /// The statements of this beginning.
    pub(crate) fn prologue(&self, begin: &Begin, guards: bool) -> Prologue {
        begin.prologue(self.timeouts(), self.reads_by_default(), guards)
    }

    /// The same beginning without the lock, which another session holds for too long.
    pub(crate) fn disregard(&self, begin: &Begin) -> Begin {
        tracing::info!(
            server = %self.target(),
            database = self.target().database(),
            "another session holds the advisory lock; continuing without it"
        );
        Begin { lock: None, ..*begin }
    }

    /// Sends the rest of a transaction in one message; rolls it back on failure.
    pub(crate) async fn finish(
        &self,
        prologue: &Prologue,
        statements: &[Statement],
        commit: bool,
    ) -> Result<Vec<u64>, Error> {
        if let Err(fenced) = fence::check(self.target()) {
            self.roll_back().await;
            return Err(fenced);
        }
        for statement in statements {
            tracing::debug!(server = %self.target(), database = self.target().database(), %statement, "apply");
        }
        let secret = statements.iter().any(Statement::is_secret);
        let commit_apart = commit && secret;
        let texts = prologue
            .lines()
            .chain(statements.iter().map(Statement::expose_sql));
        let text = join(texts.chain((commit && !secret).then_some("COMMIT")));
        let messages = [text.as_str(), "COMMIT"];
        let messages = messages.get(..1 + usize::from(commit_apart)).unwrap_or_default();
        let count = prologue.len() + statements.len() + usize::from(commit);
        let Answer {
            mut affected, lost, ..
        } = self.send(messages, count).await;
        // An error after the last answer (the server shuts down) does not undo what it confirmed.
        let Some(lost) = lost.filter(|_| affected.len() < count) else {
            affected.truncate(prologue.len() + statements.len());
            return Ok(affected.split_off(prologue.len().min(affected.len())));
        };
        let outcome_unknown = commit && lost.may_have_run();
        let error = match affected.len().checked_sub(prologue.len()) {
            None => self.not_begun(prologue, affected.len(), lost),
            Some(index) => blame(statements, index, lost, self.target()),
        };
        // A separate COMMIT has already ended the transaction: if it failed, the transaction is rolled back.
        if !commit_apart {
            self.roll_back().await;
        }
        Err(if outcome_unknown {
            error.with_kind(Kind::CommitUnknown)
        } else {
            error
        })
    }

    /// Why a transaction did not begin, given the number of completed statements of its prologue.
    pub(crate) fn not_begun(&self, prologue: &Prologue, completed: usize, lost: Lost) -> Error {
        // Between the two, the lock belongs to the session, and a rollback does not release it.
        if let [first, last] = prologue.locks()[..]
            && (first + 1..=last + 1).contains(&completed)
        {
            self.condemn();
        }
        let locking = prologue.locks().contains(&completed);
        let doing = if locking { Doing::Locking } else { Doing::Altering };
        let error = lost.into_error(doing, self.target(), &Secrets::default());
        let timed_out = matches!(error.sqlstate(), Some("55P03" | "57014"));
        if locking && timed_out {
            error.with_kind(Kind::Contended)
        } else {
            error
        }
    }

    /// Leaves a failed transaction. If that fails, the session is not used again.
    pub(crate) async fn roll_back(&self) {
        // A session that does not answer would not answer this either.
        if self.is_reusable() && self.send(&["ROLLBACK"], 1).await.lost.is_some() {
            self.condemn();
        }
    }
}

/// The error of the statement at `index`, or of COMMIT after the last.
fn blame(statements: &[Statement], index: usize, lost: Lost, target: &ConnectionConfig) -> Error {
    // All secrets, not only those of the one statement: a server's message is not limited to that statement.
    let secrets = Secrets::new(statements.iter().flat_map(Statement::secrets));
    match statements.get(index) {
        None => lost.into_error(Doing::Committing, target, &secrets),
        Some(statement) => {
            let mut text = statement.to_string();
            if let Some((end, _)) = text.char_indices().nth(MAX_SHOWN) {
                text.truncate(end);
                text.push('…');
            }
            let failed = FailedStatement {
                index,
                of: statements.len(),
                text,
            };
            lost.into_error(statement.what(), target, &secrets)
                .with_statement(failed)
        }
    }
}

/// A line break after each semicolon, so that a comment at the end of a statement does not include the next one.
fn join<'a>(statements: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for statement in statements {
        text.push_str(statement);
        text.push_str("\n;\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn a_comment_cannot_swallow_the_next_statement() {
        assert_eq!(
            join(["SELECT 1 -- one", "SELECT 2"]),
            "SELECT 1 -- one\n;\nSELECT 2\n;\n"
        );
    }
}
