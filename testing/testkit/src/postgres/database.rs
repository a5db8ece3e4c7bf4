//! A fresh database for one test.

use std::fmt;

use tokio_postgres::Client;

use super::{ADMIN, ADMIN_PASSWORD, LogEntry, Rows, Version, server::Postgres};
use crate::unique;

/// A database for one test, on a server that may be shared.
///
/// Roles belong to the whole server: use names from [`crate::unique::name`].
#[derive(Clone)]
pub struct Database<'a> {
    server: &'a Postgres,
    name: String,
}

impl Postgres {
    /// Creates an empty database. It is deleted with the server.
    pub async fn database(&self) -> Database<'_> {
        let name = unique::name("t");
        // Copying files is half the work of writing every page to the WAL.
        let create = format!("CREATE DATABASE {name} STRATEGY file_copy");
        self.execute("postgres", &create).await;
        Database { server: self, name }
    }
}

impl Database<'static> {
    /// A fresh database on the shared server of this version.
    pub async fn of(version: Version) -> Self {
        Postgres::shared(version).await.database().await
    }
}

impl<'a> Database<'a> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server it is on.
    pub fn server(&self) -> &'a Postgres {
        self.server
    }

    /// The administrator's URL.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// The URL for any user.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        self.server.url_of(user, password, &self.name)
    }

    /// A session as administrator.
    pub async fn admin(&self) -> Client {
        self.connect(ADMIN, ADMIN_PASSWORD)
            .await
            .unwrap_or_else(|error| panic!("{:?}: the administrator cannot log in: {error}", self.server))
    }

    /// A session as any user.
    pub async fn connect(&self, user: &str, password: &str) -> Result<Client, tokio_postgres::Error> {
        self.server.connect(user, password, &self.name).await
    }

    /// Runs statements as administrator.
    pub async fn execute(&self, sql: &str) {
        self.server.execute(&self.name, sql).await;
    }

    /// Runs statements as administrator and returns all their rows.
    pub async fn query(&self, sql: &str) -> Rows {
        self.server.query(&self.name, sql).await
    }

    /// The first value of the first row.
    pub async fn scalar(&self, sql: &str) -> Option<String> {
        self.server.scalar(&self.name, sql).await
    }

    /// The log entries of sessions in this database.
    pub fn log(&self) -> Vec<LogEntry> {
        self.server.log().of_database(&self.name)
    }
}

impl fmt::Debug for Database<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "database {} of {:?}", self.name, self.server)
    }
}
