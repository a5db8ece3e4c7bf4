//! The test environment: namespaces, a database, and an operator in this process, restricted to the namespaces.

mod objects;
mod sql;

use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Config};
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_policy::setup::TURN;
use stanchion_policy::{PolicyController, Setup};
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::{Database, Version, any};
use stanchion_testkit::wait::Wait;
use stanchion_testkit::{unique, wait};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

pub(crate) use objects::{condition, message};
pub(crate) use stanchion_testkit::running::Running;

/// The timeout of every wait: test machines are slow and busy.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// Two namespaces and a database.
pub(crate) struct TestEnv {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    pub(crate) other: String,
    pub(crate) client: Client,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
    /// The application name of the operator's sessions, which separates them from those of other tests.
    pub(crate) application: String,
    /// The prefix of all role names of this test: roles belong to the whole server.
    pub(crate) prefix: String,
    /// How long an operator waits for its turn at a database.
    pub(crate) turn: Duration,
    pub(crate) log: OperatorLog,
}

impl TestEnv {
    /// Uses a server version that is always the same for a test.
    pub(crate) async fn new() -> Self {
        Self::on(any()).await
    }

    /// Creates new namespaces, and a new database on a server of this version.
    pub(crate) async fn on(version: Version) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(stanchion_api::crds()).await)
            .await;
        Self {
            cluster,
            namespace: cluster.namespace("policy").await,
            other: cluster.namespace("policy").await,
            client: cluster.client().await,
            database: Database::of(version).await,
            key: Arc::new(FingerprintKey::generate()),
            application: unique::name("operator"),
            prefix: unique::name("r").replace('-', "_"),
            turn: TURN,
            log: OperatorLog::in_memory(),
        }
    }

    /// A role name that no other test uses.
    pub(crate) fn role(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }

    /// The superuser's URL of this test's database.
    pub(crate) fn url(&self) -> String {
        self.url_through(&self.database.url())
    }

    /// A URL that sets this test's application name.
    pub(crate) fn url_through(&self, url: &str) -> String {
        let separator = if url.contains('?') { '&' } else { '?' };
        format!("{url}{separator}application_name={}", self.application)
    }

    /// The operator, without faults.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(&Faults::new()).await
    }

    /// The operator, with these faults.
    pub(crate) async fn operator_with(&self, faults: &Faults) -> Running {
        let (operator, metrics, _) = self.build(self.cluster.config().await, faults.clone());
        self.run(operator, metrics)
    }

    /// Runs an operator.
    pub(crate) fn run(&self, operator: Operator, metrics: Metrics) -> Running {
        let task = tokio::spawn(operator.run().with_subscriber(self.log.dispatch()));
        Running::new("policy", task, move || metrics.encode())
    }

    /// An operator that is not running yet.
    pub(crate) fn build(&self, config: Config, faults: Faults) -> (Operator, Metrics, Pools) {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(faults)];
        let client = client::build(config, &metrics, &options).unwrap();
        let pools = Pools::new(PoolSettings::default(), Arc::new(metrics.postgres().clone()));
        let setup = Setup {
            turn: self.turn,
            ..Setup::new(pools.clone(), Arc::clone(&self.key), &metrics)
        };
        let environment = Environment {
            client,
            metrics: metrics.clone(),
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                backoff: quick(),
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        for namespace in [&self.namespace, &self.other] {
            let scope = Scope::Namespace(namespace.clone());
            operator.add(PolicyController::new(setup.clone(), scope.clone()), &scope);
        }
        (operator, metrics, pools)
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(WAIT_TIMEOUT).showing(&self.log)
    }
}

/// A backoff with the usual factor and a much shorter base.
pub(crate) fn quick() -> Backoff {
    Backoff {
        first: Duration::from_millis(50),
        most: Duration::from_millis(1600),
    }
}
