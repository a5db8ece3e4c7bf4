//! Common helpers: a session on a separate database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use std::time::Duration;

use stanchion_postgres::scram::Salt;
use stanchion_postgres::{ConnectionConfig, Error, Session, StatementObserver, Statements, Timeouts};
use stanchion_testkit::postgres::Database;
use stanchion_testkit::proxy::Proxy;

/// Enough for a busy machine; a test that reaches it has failed.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The salt of a verifier, where any salt will do.
pub(crate) const SALT: Salt = [7; 16];

/// The database's URL through the proxy.
pub(crate) fn through(database: &Database<'_>, proxy: &Proxy) -> String {
    let port = |port: u16| format!(":{port}/");
    database
        .url()
        .replace(&port(database.server().port()), &port(proxy.port()))
}

pub(crate) fn target(url: &str) -> ConnectionConfig {
    ConnectionConfig::parse(&url.into()).unwrap()
}

pub(crate) async fn connect(target: &ConnectionConfig) -> Result<Session, Error> {
    Session::connect(target, &Timeouts::default(), Arc::new(())).await
}

pub(crate) async fn session(database: &Database<'_>) -> Session {
    connect(&target(&database.url())).await.unwrap()
}

/// Counts round trips and statements.
#[derive(Default)]
pub(crate) struct Counter {
    pub(crate) round_trips: AtomicUsize,
    pub(crate) statements: AtomicUsize,
    pub(crate) failures: AtomicUsize,
}

impl StatementObserver for Counter {
    fn observe(&self, statements: &Statements<'_>) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.statements.fetch_add(statements.count, Ordering::Relaxed);
        self.failures
            .fetch_add(usize::from(!statements.succeeded), Ordering::Relaxed);
    }
}
