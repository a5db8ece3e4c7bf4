//! One connection, with a limit for everything that could take forever.
//!
//! A session that is dropped during a statement cancels it on the server; one whose request was abandoned (a deadline
//! cancelled its future) reports so through [`ReadSession::is_reusable`] and is not used again.

mod channel;
mod connect;
mod inspect;
mod limits;
mod wire;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::batch::Batch;
use crate::connection_config::ConnectionConfig;
use crate::error::Error;
use crate::identity::Identity;
use crate::observe::StatementObserver;
use crate::sqlstate::Doing;
use crate::statement::Statement;
use crate::tls::Tls;
use connect::Cancellation;

pub use connect::Terms;
pub use limits::{Budget, Limits};

pub(crate) use channel::{Meter, Road};
pub(crate) use inspect::Refusal;
pub(crate) use wire::{Answer, Lost};

/// How long the server may take to stop a cancelled statement.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Gives the default up, and restores it; see [`ReadSession`].
const DEFAULT_OF_SERVER: &str = "RESET default_transaction_read_only";
const READ_BY_DEFAULT: &str = "SET default_transaction_read_only = on";

/// The timeouts of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first packet until the session is ready. A target's own `connect_timeout` may be shorter.
    pub connect: Duration,
    /// Of each statement.
    pub statement: Duration,
    /// Of each lock that a statement waits for.
    pub lock: Duration,
    /// Of an idle transaction: it must not hold locks if we are gone.
    pub idle_in_transaction: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            statement: Duration::from_mins(1),
            lock: Duration::from_secs(10),
            idle_in_transaction: Duration::from_mins(1),
        }
    }
}

/// The security of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Security {
    /// The connection is encrypted.
    pub encrypted: bool,
    /// The server is verified: by a certificate of the given CA, by a certificate of the system's roots for its name,
    /// or because it is a local socket. No password is sent to an unverified server.
    pub verified: bool,
}

/// The memory budget of a kept answer; see [`ReadSession::keep_answer`].
#[must_use]
#[derive(Debug, Default)]
pub struct Answered(#[allow(dead_code, reason = "it is only kept alive")] Option<limits::Portion>);

/// A connection to one database, of which only the reading part is visible.
///
/// The server refuses every write of it: each of its queries runs in a read-only transaction. `pg_terminate_backend` and
/// the like are no writes for PostgreSQL, and therefore are not refused.
pub struct ReadSession {
    client: Client,
    target: ConnectionConfig,
    tls: Tls,
    /// The address that was checked and connected to.
    road: Road,
    security: Security,
    meter: Arc<Meter>,
    timeouts: Timeouts,
    observer: Arc<dyn StatementObserver>,
    identity: Identity,
    version: u32,
    /// Whether a transaction of this session only reads, unless its BEGIN says otherwise. Not on a server that only reads
    /// itself: there nothing is set, so that it is the server who decides, also after a failover.
    reads_by_default: bool,
    /// Number of requests whose answer was not read completely. Not zero after a request was abandoned.
    unanswered: AtomicUsize,
    /// How the connection ended, once it has: whether it broke.
    lost: watch::Receiver<Option<bool>>,
    /// Drives the connection; ends once `client` is dropped and everything is answered.
    driver: Option<JoinHandle<()>>,
}

/// A connection to one database.
pub struct Session(ReadSession);

impl Deref for Session {
    type Target = ReadSession;

    fn deref(&self) -> &ReadSession {
        &self.0
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut ReadSession {
        &mut self.0
    }
}

impl ReadSession {
    /// The target that this session is connected to.
    pub fn target(&self) -> &ConnectionConfig {
        &self.target
    }

    /// The identity of the database, whatever its address is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The server's version as a number: 150004 is 15.4.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The address that this session is connected to: unlike its [`Identity`], a server cannot choose it.
    pub fn peer(&self) -> String {
        self.road.to_string()
    }

    /// Whether the server is verified; see [`Security::verified`].
    pub fn verified(&self) -> bool {
        self.security.verified
    }

    /// The security of this connection.
    pub fn security(&self) -> Security {
        self.security
    }

    /// The timeouts of this session.
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn driver(&self) -> &Client {
        &self.client
    }

    pub(crate) fn reads_by_default(&self) -> bool {
        self.reads_by_default
    }

    /// Converts an error of the driver.
    pub fn error(&self, doing: Doing, error: &tokio_postgres::Error) -> Error {
        self.explain(doing, error, &crate::error::Secrets::default())
    }

    /// The same for a statement with secrets. If we closed the connection, the driver only knows that it is gone.
    pub(crate) fn explain(
        &self,
        doing: Doing,
        error: &tokio_postgres::Error,
        secrets: &crate::error::Secrets,
    ) -> Error {
        if error.as_db_error().is_none() {
            // The server and the driver are out of sync.
            self.condemn();
        }
        match self.meter.refusal() {
            Some(refusal) if error.as_db_error().is_none() => Error::refused(refusal, doing, &self.target),
            _ => Error::from_driver(error, doing, &self.target, secrets),
        }
    }

    /// Whether the session can be used again: not if it is broken, or if a request was abandoned.
    pub fn is_reusable(&self) -> bool {
        !self.client.is_closed() && self.unanswered.load(Ordering::Acquire) == 0
    }

    /// Keeps the memory budget of the last answer, because its result stays in use after the session is returned, until
    /// this is dropped.
    pub fn keep_answer(&self) -> Answered {
        Answered(self.meter.take())
    }

    /// The last answer is not needed any more.
    pub(crate) fn rest(&self) {
        self.meter.rest();
    }

    /// Waits for the end of the connection. Says whether it broke; otherwise this side has closed it.
    pub(crate) fn lost(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut lost = self.lost.clone();
        async move {
            let ended = lost.wait_for(Option::is_some).await;
            ended.is_ok_and(|lost| *lost == Some(true))
        }
    }

    /// Marks the session as unusable, for a reason that it cannot detect itself.
    pub(crate) fn condemn(&self) {
        self.unanswered.fetch_add(1, Ordering::AcqRel);
    }

    async fn close(mut self) {
        let driver = self.driver.take();
        let abandoned = self.abandon();
        drop(self);
        if let (None, Some(mut driver)) = (abandoned, driver)
            && tokio::time::timeout(CANCEL_GRACE, &mut driver).await.is_err()
        {
            driver.abort();
        }
    }

    /// If a statement is still running on the server: what is needed to cancel it.
    fn abandon(&self) -> Option<Cancellation> {
        let running = !self.client.is_closed() && self.unanswered.load(Ordering::Acquire) > 0;
        running.then(|| Cancellation {
            token: self.client.cancel_token(),
            road: self.road.clone(),
            tls: self.tls.clone(),
            encrypted: self.security.encrypted,
            host: self.target.host().to_owned(),
        })
    }
}

impl Session {
    /// The driver's client, for what this crate does not offer. Use [`ReadSession::error`] for its errors.
    pub fn client(&self) -> &Client {
        self.driver()
    }

    /// Runs one statement outside of a transaction, for statements that are not allowed in one (CREATE DATABASE). A
    /// statement with a secret runs in a transaction in any case: only there can it be kept out of the server's log.
    pub async fn execute(&mut self, statement: &Statement) -> Result<u64, Error> {
        if statement.is_secret() {
            let applied = self.apply(&Batch::new(vec![statement.clone()])).await?;
            return Ok(applied.first().copied().unwrap_or_default());
        }
        crate::fence::check(self.target())?;
        tracing::debug!(server = %self.target(), database = self.target().database(), %statement, "execute");
        let sql = statement.expose_sql();
        // Only BEGIN can say that a transaction writes, and this statement has none. So the default gives way for it, in
        // the same round trip.
        let (messages, at): (&[&str], usize) = if self.reads_by_default {
            (&[DEFAULT_OF_SERVER, sql, READ_BY_DEFAULT], 1)
        } else {
            (&[sql], 0)
        };
        let answer = self.send(messages, messages.len()).await;
        match answer.lost {
            None => Ok(answer.affected.get(at).copied().unwrap_or_default()),
            Some(lost) => {
                Err(lost.into_error(statement.what(), self.target(), &crate::error::Secrets::default()))
            }
        }
    }

    /// Closes the connection and waits until it is closed, so that the server has room for another.
    pub async fn close(self) {
        self.0.close().await;
    }
}

impl Drop for ReadSession {
    fn drop(&mut self) {
        let Some(mut driver) = self.driver.take() else {
            return;
        };
        let Some(cancellation) = self.abandon() else {
            return;
        };
        match Handle::try_current() {
            Ok(runtime) => {
                let cancellation = async move {
                    let stop = async {
                        // If a cancellation does not arrive, the server's own timeouts apply.
                        let _ = cancellation.send().await;
                        let _ = (&mut driver).await;
                    };
                    if tokio::time::timeout(CANCEL_GRACE, stop).await.is_err() {
                        driver.abort();
                    }
                };
                crate::fence::Fence::outlive(cancellation, &runtime);
            }
            Err(_) => driver.abort(),
        }
    }
}

impl fmt::Debug for ReadSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({}/{})", self.target, self.target.database())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
