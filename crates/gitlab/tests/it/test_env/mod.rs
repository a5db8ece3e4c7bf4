//! The test environment: a namespace, and an operator in this process, restricted to it.

mod flux;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Config};
use stanchion_gitlab::charts::Tenants;
use stanchion_gitlab::{GitlabController, Setup};
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::wait::{self, Wait};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber as _;

pub(crate) use objects::{buckets, ready, secret_text};
pub(crate) use stanchion_testkit::running::Running;

use crate::definitions;

/// The timeout of every wait: test machines are slow and busy.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// The version map of the shared cluster: every version that any test uses.
const MAP: &str = include_str!("map.yaml");

/// A namespace.
pub(crate) struct TestEnv {
    pub(crate) cluster: Lent,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) key: Arc<FingerprintKey>,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) log: OperatorLog,
}

/// The shared cluster, or one of this test.
pub(crate) enum Lent {
    All(&'static Cluster),
    Own(Box<Cluster>),
}

impl std::ops::Deref for Lent {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        match self {
            Self::All(cluster) => cluster,
            Self::Own(cluster) => cluster,
        }
    }
}

impl TestEnv {
    /// In a cluster with Flux, the CRDs of all other operators, and the version map.
    pub(crate) async fn new() -> Self {
        static PREPARED: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        PREPARED
            .get_or_init(async || {
                cluster.install_crds(stanchion_api::crds()).await;
                cluster.install_crds(definitions::best()).await;
                cluster.apply(MAP, "default").await;
            })
            .await;
        Self::of(Lent::All(cluster)).await
    }

    /// In a new cluster with only our CRDs.
    pub(crate) async fn bare() -> Self {
        let cluster = Cluster::start().await;
        cluster.install_crds(stanchion_api::crds()).await;
        Self::of(Lent::Own(Box::new(cluster))).await
    }

    async fn of(cluster: Lent) -> Self {
        Self {
            namespace: cluster.namespace("gitlab").await,
            client: cluster.client().await,
            key: Arc::new(FingerprintKey::generate()),
            tenants: Arc::default(),
            log: OperatorLog::in_memory(),
            cluster,
        }
    }

    /// The operator, without faults.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(&Faults::new()).await
    }

    /// The operator, with these faults.
    pub(crate) async fn operator_with(&self, faults: &Faults) -> Running {
        self.operator_as(self.cluster.config().await, faults)
    }

    /// The operator with this identity and these faults.
    pub(crate) fn operator_as(&self, config: Config, faults: &Faults) -> Running {
        let (operator, metrics) = self.build(config, faults.clone());
        let task = tokio::spawn(operator.run().with_subscriber(self.log.dispatch()));
        Running::new("gitlab", task, move || metrics.encode())
    }

    /// An operator that is not running yet.
    pub(crate) fn build(&self, config: Config, faults: Faults) -> (Operator, Metrics) {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(faults)];
        let client = client::build(config, &metrics, &options).unwrap();
        let setup = Setup {
            pools: Pools::new(PoolSettings::default(), Arc::new(metrics.postgres().clone())),
            fingerprints: Arc::clone(&self.key),
            tenants: Arc::clone(&self.tenants),
        };
        let environment = Environment {
            client,
            metrics: metrics.clone(),
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                backoff: Backoff {
                    first: Duration::from_millis(50),
                    most: Duration::from_millis(1600),
                },
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        operator.add(
            GitlabController::new(setup),
            &Scope::Namespace(self.namespace.clone()),
        );
        (operator, metrics)
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(WAIT_TIMEOUT).showing(&self.log)
    }
}
