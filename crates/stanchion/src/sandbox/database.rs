//! A real PostgreSQL with a database to try things on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use stanchion_local::account::Account;
use stanchion_local::postgres::{self, Administrator, Server};
use stanchion_local::process::{Process, Signal};
use stanchion_postgres::{Query, Session, Statement, Target, Timeouts};

use super::error::SandboxError;
use super::home::{self, Home};

/// The superuser, by whom the operator works.
pub(super) const ADMINISTRATOR: &str = "postgres";
/// The database of the examples.
pub(super) const DATABASE: &str = "app";

/// What is lost with the directory need not be written to the disk.
const THROWN_AWAY: [(&str, &str); 3] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
];

/// A running server.
pub(super) struct Database {
    server: Server,
    process: Process,
    password: SecretString,
    release: String,
    is_new: bool,
}

impl Database {
    /// Starts a server in the sandbox's directory; a new one gets its database.
    pub(super) async fn start(home: &Home) -> Result<Self, SandboxError> {
        let version = postgres::newest();
        let place = home.postgres()?;
        let password = password(&home.private("postgres-password"))?;
        let account = Account::unprivileged()?;
        if account.is_some() {
            home::open_to_others(&place)?;
        }
        let made = {
            let (place, password) = (place.clone(), password.clone());
            // It looks for programs, may download them, and runs initdb.
            tokio::task::spawn_blocking(move || prepare(version, &place, &password, account))
        };
        let programs = made.await.map_err(std::io::Error::other)??;
        let release = postgres::release(&programs).unwrap_or_else(|| version.to_string());
        let thrown_away = THROWN_AWAY.iter().filter(|_| !home.is_kept());
        let mut server = Server {
            programs,
            data: place.join("data"),
            account,
            port: 0,
            settings: thrown_away
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            log: place.join("log"),
        };
        let process = server.start().await?;
        let mut database = Self {
            server,
            process,
            password,
            release,
            is_new: false,
        };
        database.is_new = database.fill().await?;
        Ok(database)
    }

    /// Whether this is its first run.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Its version, such as `15.14`.
    pub(super) fn release(&self) -> &str {
        &self.release
    }

    /// Its port on loopback.
    pub(super) fn port(&self) -> u16 {
        self.server.port
    }

    /// The administrator's password.
    pub(super) fn password(&self) -> &SecretString {
        &self.password
    }

    /// Where its own programs are: psql, too, perhaps.
    pub(super) fn programs(&self) -> &Path {
        &self.server.programs
    }

    /// Ends it and waits for its end.
    pub(super) async fn stop(mut self) {
        // Fast shutdown: it waits for nobody's session, and leaves nothing to recover.
        self.process.signal(Signal::Int);
        self.process.wait().await;
    }

    /// Makes the database with something to read, and says whether it was not there yet.
    async fn fill(&self) -> Result<bool, SandboxError> {
        let mut session = self.connect("postgres").await?;
        let known = Query::new("SELECT 1 FROM pg_database WHERE datname = $1").text(DATABASE);
        if !session.query(&known).await?.is_empty() {
            session.close().await;
            return Ok(false);
        }
        session
            .execute(&Statement::new("CREATE DATABASE ").ident(DATABASE))
            .await?;
        session.close().await;
        let mut session = self.connect(DATABASE).await?;
        for statement in [
            "CREATE SCHEMA sales",
            "CREATE TABLE sales.orders (id bigint GENERATED ALWAYS AS IDENTITY, item text NOT NULL, price numeric NOT NULL)",
            "INSERT INTO sales.orders (item, price) VALUES ('anvil', 99.50), ('rocket skates', 249.00), ('bird seed', 4.20)",
        ] {
            session.execute(&Statement::new(statement)).await?;
        }
        session.close().await;
        Ok(true)
    }

    async fn connect(&self, database: &str) -> Result<Session, SandboxError> {
        let target = Target::new("127.0.0.1", self.port(), database, ADMINISTRATOR)?
            .with_password(self.password.clone());
        Ok(Session::connect(&target, &Timeouts::default(), Arc::new(())).await?)
    }
}

/// Finds the programs and makes the data directory where there is none. Blocks.
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

/// The administrator's password: that of the last run where there was one, else a new one.
fn password(file: &Path) -> Result<SecretString, SandboxError> {
    if let Ok(known) = fs::read_to_string(file) {
        return Ok(known.into());
    }
    let password = format!("{:032x}", rand::random::<u128>());
    home::write_private(file, &password)?;
    Ok(password.into())
}
