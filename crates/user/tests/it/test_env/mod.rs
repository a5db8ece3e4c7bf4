//! The test environment: a namespace, a database, and an operator in this process, restricted to the namespace.

mod objects;
mod sql;

use std::ops::Deref;
use std::sync::Arc;

use futures::future::join_all;
use kube::Config;
use stanchion_kernel::Scope;
use stanchion_kernel::driver::{Backoff, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::{ConnectionConfig, PoolSettings, Pools, TlsMode};
use stanchion_testenv::{OperatorOptions, TestNamespace, TestOperator};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::{Database, Version, versions};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::unique;
use stanchion_user::{DefaultInstance, InstanceController, Openings, Setup, UserController};
use tokio::sync::OnceCell;

pub(crate) use stanchion_testenv::{QUICK_BACKOFF, Running, WAIT_TIMEOUT, condition, message};
pub(crate) use stanchion_testkit::postgres::any;

/// A namespace and a database.
pub(crate) struct TestEnv {
    pub(crate) base: TestNamespace,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
    /// The operator's connection to the server, in the database that every server has.
    pub(crate) admin_url: String,
    /// The application name of the operator's sessions, which separates them from those of other tests.
    pub(crate) application: String,
}

impl Deref for TestEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.base
    }
}

/// How an operator is started.
pub(crate) struct How {
    /// The administrator's connection.
    pub(crate) admin: ConnectionConfig,
    /// Faults of its requests.
    pub(crate) faults: Faults,
    /// Its backoff.
    pub(crate) backoff: Backoff,
    /// Its identity at the API server.
    pub(crate) config: Config,
    /// What the server opens to every namespace.
    pub(crate) openings: Openings,
    /// The namespaces that it watches in addition to the test's own.
    pub(crate) more: Vec<String>,
}

impl TestEnv {
    /// Creates a new namespace, and a new database on a server of this version.
    pub(crate) async fn new(version: Version) -> Self {
        Self::in_namespace("user", version).await
    }

    /// The same in a namespace whose name starts so.
    pub(crate) async fn in_namespace(prefix: &str, version: Version) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let base = TestNamespace::new(prefix).await;
        CRDS.get_or_init(async || base.cluster.install_crds(stanchion_api::crds()).await)
            .await;
        let database = Database::of(version).await;
        Self {
            base,
            admin_url: database.server().url("postgres"),
            database,
            key: Arc::new(FingerprintKey::generate()),
            application: unique::name("operator"),
        }
    }

    /// The same, with an administrator without superuser, who owns the test's database.
    pub(crate) async fn plain(version: Version) -> Self {
        let mut env = Self::new(version).await;
        let (name, database) = (role_name(), env.database.name());
        let make = "LOGIN CREATEROLE CREATEDB PASSWORD 'admin'";
        let own = format!("CREATE ROLE {name} {make}; ALTER DATABASE {database} OWNER TO {name}");
        env.database.execute(&own).await;
        env.admin_url = env.database.server().url_of(&name, "admin", "postgres");
        env
    }

    /// With an administrator that is superuser, and with one that is not: with the rules of PostgreSQL 15, and those of
    /// 16 and later.
    pub(crate) async fn kinds() -> Vec<Self> {
        let (first, last) = bounds();
        vec![
            Self::new(first).await,
            Self::plain(first).await,
            Self::plain(last).await,
        ]
    }

    /// Runs a test on each of [`TestEnv::kinds`], in parallel: most of its time it waits.
    pub(crate) async fn on_each_kind(test: impl AsyncFn(Self)) {
        join_all(Self::kinds().await.into_iter().map(|env| test(env))).await;
    }

    /// Runs a test on every version, with each kind of administrator.
    pub(crate) async fn on_every_version(test: impl AsyncFn(Self)) {
        for version in versions() {
            let both = [Self::new(version).await, Self::plain(version).await];
            join_all(both.into_iter().map(|env| test(env))).await;
        }
    }

    /// Whether the operator may read stored passwords, and so notices a changed one.
    pub(crate) fn sees_passwords(&self) -> bool {
        self.admin_url == self.database.server().url("postgres")
    }

    /// The operator's administrator.
    pub(crate) fn admin(&self) -> ConnectionConfig {
        self.target(&self.admin_url)
    }

    fn target(&self, url: &str) -> ConnectionConfig {
        let target = ConnectionConfig::parse(&url.into()).unwrap();
        target.with_application_name(&self.application)
    }

    /// A proxy in front of the server, and the administrator's connection through it.
    pub(crate) async fn proxy(&self) -> (Proxy, ConnectionConfig) {
        let server = self.database.server();
        let proxy = Proxy::postgres(server.address()).await;
        let direct = format!("127.0.0.1:{}", server.port());
        let url = self.admin_url.replace(&direct, &proxy.address().to_string());
        // The proxy cannot read TLS.
        let target = self.target(&url).with_tls(TlsMode::Disable, None);
        (proxy, target)
    }

    /// The default settings of the operator.
    pub(crate) async fn how(&self) -> How {
        How {
            admin: self.admin(),
            faults: Faults::new(),
            backoff: Backoff::default(),
            config: self.cluster.config().await,
            openings: open(),
            more: Vec::new(),
        }
    }

    /// The operator.
    pub(crate) async fn operator(&self) -> Running {
        self.start(self.how().await)
    }

    /// The operator, with these faults.
    pub(crate) async fn operator_with(&self, faults: &Faults) -> Running {
        let faults = faults.clone();
        self.start(How {
            faults,
            ..self.how().await
        })
    }

    /// The operator, with a short backoff and a proxy between it and the server.
    pub(crate) async fn behind_a_proxy(&self) -> (Proxy, Running) {
        let (proxy, admin) = self.proxy().await;
        let backoff = QUICK_BACKOFF;
        let how = How {
            admin,
            backoff,
            ..self.how().await
        };
        (proxy, self.start(how))
    }

    /// Starts an operator.
    pub(crate) fn start(&self, how: How) -> Running {
        self.build(how).start()
    }

    /// An operator that is not running yet.
    pub(crate) fn build(&self, how: How) -> TestOperator {
        let setup = Setup {
            default_instance: DefaultInstance::new(Some(how.admin)),
            openings: how.openings,
            pools: Pools::new(PoolSettings::default(), Arc::new(())),
            fingerprints: Arc::clone(&self.key),
        };
        let settings = Settings {
            backoff: how.backoff,
            ..self.settings()
        };
        let mut operator = TestOperator::new(OperatorOptions {
            config: how.config,
            faults: how.faults,
            settings,
            log: self.log.clone(),
        });
        for namespace in how.more.into_iter().chain([self.namespace.clone()]) {
            let scope = Scope::Namespace(namespace);
            operator.add(UserController::new(setup.clone()), &scope);
            operator.add(InstanceController::new(setup.clone()), &scope);
        }
        operator
    }
}

/// A server with one tenant, which may use and adopt every role that people created. The tests under `walls` use
/// [`Openings::default`].
pub(crate) fn open() -> Openings {
    Openings {
        roles: vec!["*".into()],
        adoption: vec!["*".into()],
        parameters: vec!["my.*".into()],
        ..Openings::default()
    }
}

/// The oldest and the newest available version.
fn bounds() -> (Version, Version) {
    let versions = versions();
    (versions[0], versions[versions.len() - 1])
}

/// A role name that no other test uses: roles belong to the whole server.
pub(crate) fn role_name() -> String {
    unique::name("u").replace('-', "_")
}
