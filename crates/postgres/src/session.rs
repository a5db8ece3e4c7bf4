//! One connection, with a limit on everything that could take for ever.
//!
//! A session that is dropped in the middle of something cancels it on the server; one that is given up half-way
//! (a deadline cut its future off) says so through [`Session::is_reusable`] and is not used again.

mod channel;
mod connect;
mod inspect;
mod limits;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::batch::Batch;
use crate::error::Error;
use crate::identity::Identity;
use crate::observe::StatementObserver;
use crate::sqlstate::Doing;
use crate::statement::Statement;
use crate::target::Target;
use crate::tls::Tls;
use connect::Cancellation;

pub use connect::Terms;
pub use limits::{Budget, Limits};

pub(crate) use channel::{Meter, Road};
pub(crate) use inspect::Refusal;
pub(crate) use wire::{Answer, Lost};

/// How long the server gets to stop a statement that nobody waits for any more.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// The limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first packet until the session is set up. A target's own `connect_timeout` may be shorter.
    pub connect: Duration,
    /// For each statement.
    pub statement: Duration,
    /// For each lock that a statement waits for.
    pub lock: Duration,
    /// For a transaction in which nothing happens: our own absence must not hold locks.
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

/// How far the other side is known, and how a stranger is kept out of what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Security {
    /// Nobody on the way can read along.
    pub encrypted: bool,
    /// The server has proven to be the one that is meant: by a certificate of the CA that was given, by one of the
    /// machine's roots for its name, or by being a socket of this machine. To others no password is ever sent.
    pub verified: bool,
}

/// A share of what all answers may need together; see [`Session::keep_answer`].
#[must_use]
#[derive(Debug, Default)]
pub struct Answered(
    #[allow(dead_code, reason = "it is kept, and not looked at")] Option<OwnedSemaphorePermit>,
);

/// A connection to one database.
pub struct Session {
    client: Client,
    target: Target,
    tls: Tls,
    /// The address that was checked and connected to.
    road: Road,
    security: Security,
    meter: Arc<Meter>,
    timeouts: Timeouts,
    observer: Arc<dyn StatementObserver>,
    identity: Identity,
    version: u32,
    /// Requests whose answer was not read to its end. Not zero after one was abandoned.
    unanswered: AtomicUsize,
    /// Drives the connection; ends by itself once `client` is gone and everything is answered.
    driver: Option<JoinHandle<()>>,
}

impl Session {
    /// The target that this session is connected to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Which database this is, whatever it is called on the way.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The server's version as a number: 150004 is 15.4.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The address that this session is connected to: what a server cannot choose, unlike its [`Identity`].
    pub fn peer(&self) -> String {
        self.road.to_string()
    }

    /// Whether the server has proven to be the one that is meant; see [`Security::verified`].
    pub fn verified(&self) -> bool {
        self.security.verified
    }

    /// How far the other side is known.
    pub fn security(&self) -> Security {
        self.security
    }

    /// The limits of this session.
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// The driver's client, for what this crate does not offer. Use [`Session::error`] for its errors.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes an error of the driver one of ours.
    pub fn error(&self, doing: Doing, error: &tokio_postgres::Error) -> Error {
        self.explain(doing, error, &crate::error::Secrets::default())
    }

    /// The same for a statement with secrets. When we hung up on the server, the driver knows only that the
    /// connection is gone.
    pub(crate) fn explain(
        &self,
        doing: Doing,
        error: &tokio_postgres::Error,
        secrets: &crate::error::Secrets,
    ) -> Error {
        if error.as_db_error().is_none() {
            // The server and the driver do not agree on what is being said.
            self.condemn();
        }
        match self.meter.refusal() {
            Some(refusal) if error.as_db_error().is_none() => Error::refused(refusal, doing, &self.target),
            _ => Error::from_driver(error, doing, &self.target, secrets),
        }
    }

    /// Can the session serve somebody else? Not if it is broken, or if an answer was never waited for.
    pub fn is_reusable(&self) -> bool {
        !self.client.is_closed() && self.unanswered.load(Ordering::Acquire) == 0
    }

    /// What was made of the last answer stays in use after this session is given back: until this is dropped, the answer
    /// counts as under way.
    pub fn keep_answer(&self) -> Answered {
        Answered(self.meter.take())
    }

    /// What was answered is not needed any more.
    pub(crate) fn rest(&self) {
        self.meter.rest();
    }

    /// Never to be used again, for a reason that the session cannot see itself.
    pub(crate) fn condemn(&self) {
        self.unanswered.fetch_add(1, Ordering::AcqRel);
    }

    /// Runs one statement outside any transaction, for those that refuse to be in one (CREATE DATABASE). One with
    /// a secret is run in a transaction all the same: only there can it be kept out of the server's log.
    pub async fn execute(&mut self, statement: &Statement) -> Result<u64, Error> {
        if statement.is_secret() {
            let applied = self.apply(&Batch::new(vec![statement.clone()])).await?;
            return Ok(applied.first().copied().unwrap_or_default());
        }
        crate::fence::check(&self.target)?;
        tracing::debug!(server = %self.target, database = self.target.database(), %statement, "execute");
        let answer = self.send(&[statement.expose_sql()], 1).await;
        match answer.lost {
            None => Ok(answer.affected.first().copied().unwrap_or_default()),
            Some(lost) => {
                Err(lost.into_error(statement.what(), &self.target, &crate::error::Secrets::default()))
            }
        }
    }

    /// Says goodbye and waits until the connection is gone, so that the server has room for another.
    pub async fn close(mut self) {
        let driver = self.driver.take();
        let abandoned = self.abandon();
        drop(self);
        if let (None, Some(mut driver)) = (abandoned, driver)
            && tokio::time::timeout(CANCEL_GRACE, &mut driver).await.is_err()
        {
            driver.abort();
        }
    }

    /// If something is still running on the server: what is needed to stop it.
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

impl Drop for Session {
    fn drop(&mut self) {
        let Some(mut driver) = self.driver.take() else {
            return;
        };
        let Some(cancellation) = self.abandon() else {
            return;
        };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    let stop = async {
                        // A cancellation that does not arrive is made up for by the server's own timeouts.
                        let _ = cancellation.send().await;
                        let _ = (&mut driver).await;
                    };
                    if tokio::time::timeout(CANCEL_GRACE, stop).await.is_err() {
                        driver.abort();
                    }
                });
            }
            Err(_) => driver.abort(),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({}/{})", self.target, self.target.database())
    }
}
