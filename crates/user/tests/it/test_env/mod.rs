//! The test environment: a namespace, a database, and an operator in this process, restricted to the namespace.

mod objects;
mod sql;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::{Client, Config};
use stanchion_api::PostgresUser;
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{ConnectionConfig, PoolSettings, Pools, TlsMode};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::{Database, Version, versions};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::wait::Wait;
use stanchion_testkit::{unique, wait};
use stanchion_user::{DefaultInstance, InstanceController, Openings, Setup, UserController};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

pub(crate) use stanchion_testkit::postgres::any;
pub(crate) use stanchion_testkit::running::Running;

/// The timeout of every wait: test machines are slow and busy.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// A namespace and a database.
pub(crate) struct TestEnv {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
    /// The operator's connection to the server, in the database that every server has.
    pub(crate) admin_url: String,
    /// The application name of the operator's sessions, which separates them from those of other tests.
    pub(crate) application: String,
    /// The operators' log, for failed tests.
    pub(crate) log: OperatorLog,
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
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(stanchion_api::crds()).await)
            .await;
        let database = Database::of(version).await;
        Self {
            cluster,
            namespace: cluster.namespace("user").await,
            client: cluster.client().await,
            admin_url: database.server().url("postgres"),
            database,
            key: Arc::new(FingerprintKey::generate()),
            application: unique::name("operator"),
            log: OperatorLog::in_memory(),
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
            let beds = [Self::new(version).await, Self::plain(version).await];
            join_all(beds.into_iter().map(|env| test(env))).await;
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
        let backoff = quick();
        let how = How {
            admin,
            backoff,
            ..self.how().await
        };
        (proxy, self.start(how))
    }

    /// Starts an operator.
    pub(crate) fn start(&self, how: How) -> Running {
        let (operator, metrics) = self.build(how);
        let task = tokio::spawn(operator.run().with_subscriber(self.log.dispatch()));
        Running::new("user", task, move || metrics.encode())
    }

    /// An operator that is not running yet.
    pub(crate) fn build(&self, how: How) -> (Operator, Metrics) {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(how.faults)];
        let client = client::build(how.config, &metrics, &options).unwrap();
        let setup = Setup {
            default_instance: DefaultInstance::new(Some(how.admin)),
            openings: how.openings,
            pools: Pools::new(PoolSettings::default(), Arc::new(())),
            fingerprints: Arc::clone(&self.key),
        };
        let environment = Environment {
            client,
            metrics: metrics.clone(),
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                backoff: how.backoff,
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        for namespace in how.more.into_iter().chain([self.namespace.clone()]) {
            let scope = Scope::Namespace(namespace);
            operator.add(UserController::new(setup.clone()), &scope);
            operator.add(InstanceController::new(setup.clone()), &scope);
        }
        (operator, metrics)
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(WAIT_TIMEOUT).showing(&self.log)
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

/// A condition's message.
pub(crate) fn message(user: &PostgresUser, kind: &str) -> String {
    let conditions = user.status.iter().flat_map(|status| &status.conditions);
    let mut found = conditions.filter(|condition| condition.type_ == kind);
    found
        .next()
        .map(|found| found.message.clone())
        .unwrap_or_default()
}

/// A backoff with the usual factor and a much shorter base.
pub(crate) fn quick() -> Backoff {
    Backoff {
        first: Duration::from_millis(50),
        most: Duration::from_millis(1600),
    }
}

/// A condition's status and reason, if it is for the current generation.
pub(crate) fn condition(user: &PostgresUser, kind: &str) -> Option<(String, String)> {
    let conditions = &user.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    (found.observed_generation == user.metadata.generation)
        .then(|| (found.status.clone(), found.reason.clone()))
}
