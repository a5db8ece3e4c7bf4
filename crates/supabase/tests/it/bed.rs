//! A server of one's own, a database on it, and what a project asks of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;
use stanchion_kernel::Problem;
use stanchion_postgres::{PoolSettings, Pools, Target};
use stanchion_supabase::database::{self, Login, Outcome, Request};
use stanchion_testkit::postgres::{Postgres, Rows, Version};

/// A server, because roles belong to the whole of it.
pub(crate) struct Bed {
    pub(crate) server: Postgres,
    pub(crate) database: String,
}

impl Bed {
    pub(crate) async fn new(version: Version) -> Self {
        Self::named(version, "shop").await
    }

    pub(crate) async fn named(version: Version, database: &str) -> Self {
        let server = Postgres::builder(version)
            .setting("wal_level", "logical")
            .start()
            .await;
        let bed = Self {
            server,
            database: database.to_owned(),
        };
        let quoted = database.replace('"', "\"\"");
        bed.server
            .execute("postgres", &format!("CREATE DATABASE \"{quoted}\""))
            .await;
        bed
    }

    pub(crate) fn target(&self) -> Target {
        target(&self.server.url(&self.database))
    }

    pub(crate) async fn initialise(&self, request: &Request) -> Result<Outcome, Problem> {
        database::initialise(&pools(), &self.target(), request).await
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.server.execute(&self.database, sql).await;
    }

    pub(crate) async fn rows(&self, sql: &str) -> Rows {
        self.server.query(&self.database, sql).await
    }

    /// The first column of all rows.
    pub(crate) async fn column(&self, sql: &str) -> Vec<String> {
        self.rows(sql)
            .await
            .into_iter()
            .filter_map(|mut row| row.swap_remove(0))
            .collect()
    }

    /// The first value of the first row.
    pub(crate) async fn scalar(&self, sql: &str) -> String {
        self.server.scalar(&self.database, sql).await.unwrap_or_default()
    }

    /// Logs in as a service.
    pub(crate) async fn connect(&self, login: Login) -> tokio_postgres::Client {
        let connected = self
            .server
            .connect(login.role(), &password(login), &self.database)
            .await;
        connected.unwrap_or_else(|error| panic!("{login:?}: {error:?}"))
    }

    /// The URL that a service logs in with.
    pub(crate) fn url(&self, login: Login) -> String {
        self.server.url_of(login.role(), &password(login), &self.database)
    }
}

pub(crate) fn target(url: &str) -> Target {
    Target::parse(&url.into()).unwrap()
}

pub(crate) fn pools() -> Pools {
    Pools::new(PoolSettings::default(), Arc::new(()))
}

pub(crate) fn password(login: Login) -> String {
    format!("{login:?}-password")
}

/// Everything that is not optional.
pub(crate) fn request() -> Request {
    with(&Login::ALL[..7])
}

/// Everything.
pub(crate) fn full_request() -> Request {
    with(&Login::ALL)
}

fn with(logins: &[Login]) -> Request {
    let password = |login: &Login| (*login, SecretString::from(password(*login)));
    Request {
        project: "default/shop".to_owned(),
        passwords: logins.iter().map(password).collect::<BTreeMap<_, _>>(),
    }
}
