//! Sends text with many statements, and reads how far the server got.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::Instant;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow, SimpleQueryStream};

use crate::connection_config::ConnectionConfig;
use crate::error::{Error, Kind, Secrets};
use crate::observe::Statements;
use crate::session::{ReadSession, Refusal};
use crate::sqlstate::Doing;

/// The maximum network time in addition to the server's own statement timeout.
const NETWORK_GRACE: Duration = Duration::from_secs(10);

/// The server's answer.
#[derive(Default)]
pub(crate) struct Answer {
    /// The affected or returned rows of each completed statement.
    pub(crate) affected: Vec<u64>,
    /// All rows, of all statements.
    pub(crate) rows: Vec<SimpleQueryRow>,
    /// Why the answer is incomplete.
    pub(crate) lost: Option<Lost>,
}

/// Why an answer ended early.
pub(crate) enum Lost {
    /// The message could not be sent.
    Unsent(tokio_postgres::Error),
    /// The server returned an error, or the connection broke.
    Driver(tokio_postgres::Error),
    /// Nothing arrived for longer than any statement may take.
    Silence(Duration),
    /// The server sent something that is not accepted, and we closed the connection.
    Refused(Refusal),
}

impl Lost {
    /// Whether the server may have run everything. Not if the message was never sent, nor if the server itself reports
    /// an error: then it has rolled back the transaction.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            Self::Unsent(_) => false,
            Self::Driver(error) => error.as_db_error().is_none(),
            Self::Silence(_) | Self::Refused(_) => true,
        }
    }

    /// Whether the server answered with an error.
    fn is_answer(&self) -> bool {
        matches!(self, Self::Driver(error) if error.as_db_error().is_some())
    }

    pub(crate) fn into_error(self, doing: Doing, target: &ConnectionConfig, secrets: &Secrets) -> Error {
        match self {
            Self::Unsent(error) | Self::Driver(error) => Error::from_driver(&error, doing, target, secrets),
            Self::Silence(time) => {
                let cause = format!(
                    "no answer for {} seconds; the statement was cancelled",
                    time.as_secs()
                );
                Error::new(Kind::TimedOut, doing, target, cause)
            }
            Self::Refused(refusal) => Error::refused(refusal, doing, target),
        }
    }
}

/// A pending request. Unless it is `answered`, the session is not used again: the waiting task was cancelled.
#[must_use]
pub(crate) struct Asked<'s> {
    session: &'s ReadSession,
    begun: Instant,
    answered: bool,
}

impl Asked<'_> {
    pub(crate) fn answered(mut self) {
        self.answered = true;
        self.session.unanswered.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.session.observer.abandoned(self.begun.elapsed());
        }
    }
}

impl ReadSession {
    /// This many messages are about to be sent.
    pub(crate) fn ask(&self, messages: usize) -> Asked<'_> {
        let first = self.unanswered.fetch_add(1, Ordering::AcqRel) == 0;
        self.meter.ask(messages, first);
        Asked {
            session: self,
            begun: Instant::now(),
            answered: false,
        }
    }

    /// Sends all messages, then reads their answers as one. The server stops at the first of their `count` statements
    /// that fails and continues with the next message, whose answer is then ignored.
    pub(crate) async fn send(&self, messages: &[&str], count: usize) -> Answer {
        let begun = Instant::now();
        let asked = self.ask(messages.len());
        let mut answer = Answer::default();
        let mut posted = Vec::with_capacity(messages.len());
        for message in messages {
            // This does not wait: it passes the message to the task that writes.
            match self.client.simple_query_raw(message).await {
                Ok(stream) => posted.push(stream),
                Err(error) => answer.lost = Some(Lost::Unsent(error)),
            }
        }
        let mut silent = false;
        let mut ignored = Answer::default();
        for stream in posted {
            let answer = if answer.lost.is_none() {
                &mut answer
            } else {
                &mut ignored
            };
            // Restarted by every part of the answer: a long batch may take long, a single statement may not.
            self.listen(stream, self.answer_timeout(1), answer).await;
            silent = matches!(answer.lost, Some(Lost::Silence(_)));
            if silent {
                break;
            }
        }
        if !silent {
            asked.answered();
        }
        let succeeded = answer.lost.is_none();
        let answered = answer.lost.as_ref().is_none_or(Lost::is_answer);
        self.observe(Doing::Altering, count, begun, (succeeded, answered));
        answer
    }

    /// Sends one message when first polled, and reads its answer. `answer_timeout` is the timeout of each part of the answer.
    pub(crate) async fn converse(&self, message: &str, answer_timeout: Duration) -> Answer {
        let mut answer = Answer::default();
        match self.client.simple_query_raw(message).await {
            Ok(stream) => self.listen(stream, answer_timeout, &mut answer).await,
            Err(error) => answer.lost = Some(Lost::Unsent(error)),
        }
        answer
    }

    async fn listen(&self, stream: SimpleQueryStream, answer_timeout: Duration, answer: &mut Answer) {
        let mut stream = std::pin::pin!(stream);
        loop {
            match tokio::time::timeout(answer_timeout, stream.next()).await {
                Ok(Some(Ok(SimpleQueryMessage::CommandComplete(count)))) => answer.affected.push(count),
                Ok(Some(Ok(SimpleQueryMessage::Row(row)))) => answer.rows.push(row),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => {
                    if error.as_db_error().is_none() {
                        self.condemn();
                    }
                    let refusal = self.meter.refusal().filter(|_| error.as_db_error().is_none());
                    answer.lost = Some(refusal.map_or(Lost::Driver(error), Lost::Refused));
                    return;
                }
                Ok(None) => return,
                Err(_) => {
                    answer.lost = Some(Lost::Silence(answer_timeout));
                    return;
                }
            }
        }
    }

    /// The maximum duration of `count` statements, including the network.
    pub(crate) fn answer_timeout(&self, count: usize) -> Duration {
        let statement = self.timeouts.statement;
        statement * u32::try_from(count).unwrap_or(u32::MAX) + statement.min(NETWORK_GRACE)
    }

    /// Reports a round trip: whether it succeeded, and whether the server answered.
    pub(crate) fn observe(
        &self,
        doing: Doing,
        count: usize,
        begun: Instant,
        (succeeded, answered): (bool, bool),
    ) {
        self.observer.observe(&Statements {
            server: &self.target.to_string(),
            database: self.target.database(),
            reading: doing == Doing::Reading,
            count,
            elapsed: begun.elapsed(),
            succeeded,
            answered,
        });
    }
}
