//! A server for one test, a database on it, and a project's request.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use secrecy::SecretString;
use stanchion_kernel::Problem;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::{ConnectionConfig, PoolSettings, Pools, Session, Timeouts, TlsMode};
use stanchion_supabase::database::{self, Login, Outcome, Request};
use stanchion_testkit::postgres::{Postgres, Rows, Version};
use stanchion_testkit::proxy::Proxy;

/// The installation's key.
pub(crate) static KEY: LazyLock<Arc<FingerprintKey>> = LazyLock::new(|| Arc::new(FingerprintKey::generate()));

/// A server, because roles belong to the whole server.
pub(crate) struct DatabaseEnv {
    pub(crate) server: Postgres,
    pub(crate) database: String,
}

impl DatabaseEnv {
    /// A server, and a database `shop` on it.
    pub(crate) async fn new(version: Version) -> Self {
        Self::named(version, "shop").await
    }

    pub(crate) async fn named(version: Version, database: &str) -> Self {
        let server = Postgres::builder(version)
            .setting("wal_level", "logical")
            .start()
            .await;
        Self::of(server, database).await
    }

    /// An existing server, and a new database on it.
    pub(crate) async fn of(server: Postgres, database: &str) -> Self {
        let db_env = Self {
            server,
            database: database.to_owned(),
        };
        db_env.create_database().await;
        db_env
    }

    async fn create_database(&self) {
        let create = format!("CREATE DATABASE {} STRATEGY file_copy", quoted(&self.database));
        self.server.execute("postgres", &create).await;
    }

    /// Resets the server, with an empty database of this name.
    pub(crate) async fn renew(&mut self, database: &str) {
        self.forget().await;
        database.clone_into(&mut self.database);
        self.create_database().await;
    }

    /// Resets the server, with an empty database of the same name.
    pub(crate) async fn empty(&self) {
        self.forget().await;
        self.create_database().await;
    }

    /// Drops all databases and roles.
    async fn forget(&self) {
        for old in [&self.database, "_supabase"] {
            let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(old));
            self.server.execute("postgres", &drop).await;
        }
        let ours = "DO $$ DECLARE role text; BEGIN \
                    FOR role IN SELECT quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^pg_' AND rolname <> 'postgres' \
                    LOOP EXECUTE 'DROP OWNED BY ' || role; EXECUTE 'DROP ROLE ' || role; END LOOP; END $$";
        self.server.execute("postgres", ours).await;
    }

    pub(crate) fn target(&self) -> ConnectionConfig {
        target(&self.server.url(&self.database))
    }

    pub(crate) async fn initialise(&self, request: &Request) -> Result<Outcome, Problem> {
        initialise(&pools(), &self.target(), request).await
    }

    /// Checks whether anything is left to do.
    pub(crate) async fn inspect(&self, request: &Request) -> Result<Option<Outcome>, Problem> {
        let session = Session::connect(&self.target(), &Timeouts::default(), Arc::new(()))
            .await
            .unwrap();
        database::inspect(&session, request, None).await
    }

    /// The administrator's connection through a proxy, which sees every statement.
    pub(crate) fn through(&self, proxy: &Proxy) -> ConnectionConfig {
        let (direct, port) = (self.server.url(&self.database), self.server.port());
        target(&direct.replace(&format!(":{port}/"), &format!(":{}/", proxy.port())))
            .with_tls(TlsMode::Disable, None)
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

    /// The URL of a service's login.
    pub(crate) fn url(&self, login: Login) -> String {
        self.server.url_of(login.role(), &password(login), &self.database)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(crate) fn target(url: &str) -> ConnectionConfig {
    ConnectionConfig::parse(&url.into()).unwrap()
}

pub(crate) fn pools() -> Pools {
    Pools::new(PoolSettings::default(), Arc::new(()))
}

pub(crate) fn password(login: Login) -> String {
    format!("{login:?}-password")
}

/// A request with everything, for another project.
pub(crate) fn request_of(project: &str) -> Request {
    Request {
        project: project.to_owned(),
        ..full_request()
    }
}

/// A request without optional components.
pub(crate) fn request() -> Request {
    with(&Login::ALL[..7])
}

/// A request with everything.
pub(crate) fn full_request() -> Request {
    with(&Login::ALL)
}

fn with(logins: &[Login]) -> Request {
    let password = |login: &Login| (*login, SecretString::from(password(*login)));
    Request {
        project: "default/shop".to_owned(),
        uid: "uid".to_owned(),
        passwords: logins.iter().map(password).collect::<BTreeMap<_, _>>(),
        key: Arc::clone(&KEY),
    }
}

/// Initialises a database, with random salts.
pub(crate) async fn initialise(
    pools: &Pools,
    target: &ConnectionConfig,
    request: &Request,
) -> Result<Outcome, Problem> {
    database::initialise(pools, target, request, StdRng::from_os_rng()).await
}
