//! A real PostgreSQL with databases for the examples.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use stanchion_local::account::Account;
use stanchion_local::postgres::{self, Administrator, Server};
use stanchion_local::process::{Process, Signal};
use stanchion_postgres::{ConnectionConfig, Query, Session, Statement, Timeouts};

use super::super::error::SandboxError;
use super::super::home::{self, Home};

/// The superuser that the operator uses.
pub(in super::super) const ADMINISTRATOR: &str = "postgres";

/// Realtime needs it for logical replication.
const SETTINGS: &[(&str, &str)] = &[("wal_level", "logical")];

/// A temporary server need not sync its data to disk.
const THROWN_AWAY: &[(&str, &str)] = &[
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
];

/// A running server.
pub(in super::super) struct Database {
    server: Server,
    process: Process,
    password: SecretString,
    release: String,
}

impl Database {
    /// Starts a server in the sandbox's directory.
    pub(super) async fn start(home: &Home) -> Result<Self, SandboxError> {
        let place = home.folder("postgres")?;
        // Only the version that initialised kept data can read it.
        let version = postgres::of_data(&place.join("data")).unwrap_or_else(postgres::newest);
        let password = home.secret("postgres-password")?;
        let account = Account::unprivileged()?;
        if account.is_some() {
            home::open_to_others(&place)?;
        }
        let made = {
            let (place, password) = (place.clone(), password.clone());
            // It searches for programs, may download them, and runs initdb.
            tokio::task::spawn_blocking(move || prepare(version, &place, &password, account))
        };
        let programs = made.await.map_err(std::io::Error::other)??;
        let release = postgres::release(&programs).unwrap_or_else(|| version.to_string());
        let thrown_away = if home.is_kept() { &[] } else { THROWN_AWAY };
        let mut server = Server {
            programs,
            data: place.join("data"),
            account,
            port: 0,
            settings: [SETTINGS, thrown_away]
                .concat()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            log: place.join("log"),
        };
        let process = server.start().await?;
        Ok(Self {
            server,
            process,
            password,
            release,
        })
    }

    /// Its version, such as `15.14`.
    pub(super) fn release(&self) -> &str {
        &self.release
    }

    /// Its port on loopback.
    pub(in super::super) fn port(&self) -> u16 {
        self.server.port
    }

    /// The administrator's password.
    pub(in super::super) fn password(&self) -> &SecretString {
        &self.password
    }

    /// The directory of its programs, which may include psql.
    pub(in super::super) fn programs(&self) -> &Path {
        &self.server.programs
    }

    /// Stops the server and waits for its end.
    pub(super) async fn stop(mut self) {
        // Fast shutdown: it does not wait for sessions, and needs no recovery.
        self.process.signal(Signal::Int);
        self.process.wait().await;
    }

    /// Creates a database with its content if it does not exist.
    pub(in super::super) async fn create(
        &self,
        name: &str,
        statements: &[&'static str],
    ) -> Result<(), SandboxError> {
        let mut session = self.connect("postgres").await?;
        let known = Query::new("SELECT 1 FROM pg_database WHERE datname = $1").text(name);
        let is_known = !session.query(&known).await?.is_empty();
        if !is_known {
            session
                .execute(&Statement::new("CREATE DATABASE ").ident(name))
                .await?;
        }
        session.close().await;
        if is_known {
            return Ok(());
        }
        let mut session = self.connect(name).await?;
        for statement in statements {
            session.execute(&Statement::new(statement)).await?;
        }
        session.close().await;
        Ok(())
    }

    async fn connect(&self, database: &str) -> Result<Session, SandboxError> {
        let target = ConnectionConfig::new("127.0.0.1", self.port(), database, ADMINISTRATOR)?
            .with_password(self.password.clone());
        Ok(Session::connect(&target, &Timeouts::default(), Arc::new(())).await?)
    }
}

/// Finds the programs and creates the data directory if it does not exist. Blocks.
fn prepare(
    version: postgres::Version,
    place: &Path,
    password: &SecretString,
    account: Option<Account>,
) -> Result<PathBuf, stanchion_local::Error> {
    let programs = postgres::programs(version)?;
    if !place.join("data/PG_VERSION").exists() {
        let administrator = Administrator {
            name: ADMINISTRATOR,
            password: password.expose_secret(),
        };
        postgres::initialise(&programs, place, administrator, account)?;
    }
    Ok(programs)
}
