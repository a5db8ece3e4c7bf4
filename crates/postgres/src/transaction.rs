//! A transaction that reads before it decides what to write.
//!
//! Beginning, taking the lock and the first reads are one round trip; the statements and COMMIT are the second.

use std::ops::Deref;

use futures::FutureExt as _;
use tokio_postgres::Row;

use crate::batch::{Begin, GUARDS, Isolation, Prologue};
use crate::error::{Error, Kind, Secrets};
use crate::read::{Query, Sink, collect};
use crate::session::{ReadSession, Session};
use crate::sqlstate::Doing;
use crate::statement::Statement;

/// The reading part of an open transaction, or a transaction that only reads. Dropping it rolls it back.
pub struct ReadTransaction<'s> {
    session: &'s mut ReadSession,
    open: bool,
}

/// An open transaction. Dropping it rolls it back.
pub struct Transaction<'s> {
    reads: ReadTransaction<'s>,
    /// Secrets can be sent: the server does not log them.
    guarded: bool,
}

impl ReadSession {
    /// Begins a transaction that only reads, in one snapshot, for reads that depend on earlier ones; passes each row of
    /// the first reads to `sink`. On an error, rows may be missing.
    pub async fn begin_reading(
        &mut self,
        queries: &[Query],
        sink: &mut Sink<'_>,
    ) -> Result<ReadTransaction<'_>, Error> {
        let begin = Begin {
            isolation: Isolation::RepeatableRead,
            read_only: true,
            ..Begin::default()
        };
        self.open(&begin, queries, sink).await
    }

    async fn open(
        &mut self,
        begin: &Begin,
        queries: &[Query],
        sink: &mut Sink<'_>,
    ) -> Result<ReadTransaction<'_>, Error> {
        let prologue = self.prologue(begin, false);
        let mut answer = self.stream(&prologue, queries, None, sink).await;
        if begin.lock.is_some()
            && answer
                .as_ref()
                .is_err_and(|error| error.kind() == Kind::Contended)
        {
            self.roll_back().await;
            let prologue = self.prologue(&self.disregard(begin), false);
            // Without the lock no query ran, so the sink gets no row twice.
            answer = self.stream(&prologue, queries, None, sink).await;
        }
        match answer {
            Ok(()) => Ok(ReadTransaction {
                session: self,
                open: true,
            }),
            Err(error) => {
                self.roll_back().await;
                Err(error)
            }
        }
    }
}

impl Session {
    /// Begins a transaction, with the first reads.
    pub async fn begin(
        &mut self,
        begin: &Begin,
        queries: &[Query],
    ) -> Result<(Transaction<'_>, Vec<Vec<Row>>), Error> {
        let mut answers: Vec<Vec<Row>> = queries.iter().map(|_| Vec::new()).collect();
        let transaction = self
            .begin_and_stream(begin, queries, &mut collect(&mut answers))
            .await?;
        Ok((transaction, answers))
    }

    /// The same, but passes each row to `sink`. On an error, rows may be missing.
    pub async fn begin_and_stream(
        &mut self,
        begin: &Begin,
        queries: &[Query],
        sink: &mut Sink<'_>,
    ) -> Result<Transaction<'_>, Error> {
        Ok(Transaction {
            reads: self.open(begin, queries, sink).await?,
            guarded: begin.guarded,
        })
    }
}

impl ReadTransaction<'_> {
    /// The session of the transaction.
    pub fn session(&self) -> &ReadSession {
        self.session
    }

    /// More queries, in one round trip.
    pub async fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Error> {
        self.session.pipeline(&Prologue::default(), queries, None).await
    }

    /// Rolls the transaction back.
    pub async fn roll_back(mut self) {
        self.open = false;
        self.session.roll_back().await;
    }
}

impl<'s> Deref for Transaction<'s> {
    type Target = ReadTransaction<'s>;

    fn deref(&self) -> &ReadTransaction<'s> {
        &self.reads
    }
}

impl Transaction<'_> {
    /// Runs the statements and continues. A failure ends the transaction.
    pub async fn apply(&mut self, statements: &[Statement]) -> Result<Vec<u64>, Error> {
        self.guard(statements).await?;
        let applied = self.session.finish(&Prologue::default(), statements, false).await;
        self.reads.open = applied.is_ok();
        applied
    }

    /// Runs the statements, reads the result, and continues: one round trip. A failure ends the transaction.
    pub async fn apply_and_read(
        &mut self,
        statements: &[Statement],
        queries: &[Query],
    ) -> Result<Vec<Vec<Row>>, Error> {
        self.guard(statements).await?;
        // Each sends its message when it is first polled, and they are first polled in this order.
        let prologue = Prologue::default();
        let applied = self.session.finish(&prologue, statements, false);
        let read = self.session.pipeline(&prologue, queries, None);
        let (applied, rows) = futures::join!(applied, read);
        if applied.is_err() {
            // While the read was pending, nothing else could be sent to the session, not even ROLLBACK.
            self.reads.open = false;
            self.session.roll_back().await;
        }
        applied?;
        rows
    }

    /// Runs the statements and commits.
    pub async fn commit(mut self, statements: &[Statement]) -> Result<Vec<u64>, Error> {
        self.guard(statements).await?;
        self.reads.open = false;
        self.session.finish(&Prologue::default(), statements, true).await
    }

    /// Rolls the transaction back.
    pub async fn roll_back(self) {
        self.reads.roll_back().await;
    }

    /// Before the first secret: see [`crate::batch`].
    async fn guard(&mut self, statements: &[Statement]) -> Result<(), Error> {
        if self.guarded || !statements.iter().any(Statement::is_secret) {
            return Ok(());
        }
        let answer = self.session.send(&[GUARDS], 1).await;
        if let Some(lost) = answer.lost {
            return Err(lost.into_error(Doing::Altering, self.session.target(), &Secrets::default()));
        }
        self.guarded = true;
        Ok(())
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        // The message is sent once the future has been polled; its answer is ignored.
        if self.open
            && self
                .session
                .driver()
                .batch_execute("ROLLBACK")
                .now_or_never()
                .is_some()
        {
            // It ended at once, so it could not be sent.
            self.session.condemn();
        }
    }
}
