//! The test environment: a namespace, and an operator in this process, restricted to it.

mod flux;
mod objects;

use std::ops::Deref;
use std::sync::Arc;

use kube::Config;
use stanchion_gitlab::charts::Tenants;
use stanchion_gitlab::{GitlabController, Setup};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_testenv::{TestNamespace, TestOperator};
use stanchion_testkit::faults::Faults;
use tokio::sync::OnceCell;

pub(crate) use objects::{buckets, ready, secret_text};
pub(crate) use stanchion_testenv::{Running, WAIT_TIMEOUT};

use crate::definitions;

/// The version map of the shared cluster: every version that any test uses.
pub(crate) const MAP: &str = include_str!("map.yaml");

/// A namespace.
pub(crate) struct TestEnv {
    pub(crate) base: TestNamespace,
    pub(crate) key: Arc<FingerprintKey>,
    pub(crate) tenants: Arc<Tenants>,
}

impl Deref for TestEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.base
    }
}

impl TestEnv {
    /// In a cluster with Flux, the CRDs of all other operators, and the version map.
    pub(crate) async fn new() -> Self {
        static PREPARED: OnceCell<()> = OnceCell::const_new();
        let base = TestNamespace::new("gitlab").await;
        let cluster = &base.cluster;
        PREPARED
            .get_or_init(async || {
                cluster.install_crds(stanchion_api::crds()).await;
                cluster.install_crds(definitions::best()).await;
                cluster.apply(MAP, "default").await;
            })
            .await;
        Self::of(base)
    }

    /// In a new cluster with only our CRDs.
    pub(crate) async fn bare() -> Self {
        let base = TestNamespace::in_own_cluster("gitlab").await;
        base.cluster.install_crds(stanchion_api::crds()).await;
        Self::of(base)
    }

    pub(crate) fn of(base: TestNamespace) -> Self {
        Self {
            base,
            key: Arc::new(FingerprintKey::generate()),
            tenants: Arc::default(),
        }
    }

    /// The operator, without faults.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(&Faults::new()).await
    }

    /// The operator, with these faults.
    pub(crate) async fn operator_with(&self, faults: &Faults) -> Running {
        self.build(self.cluster.config().await, faults).await.start()
    }

    /// The operator with this identity and these faults.
    pub(crate) async fn operator_as(&self, config: Config, faults: &Faults) -> Running {
        self.build(config, faults).await.start()
    }

    /// An operator that is not running yet.
    pub(crate) async fn build(&self, config: Config, faults: &Faults) -> TestOperator {
        let options = self.operator_options().await;
        let operator = TestOperator::new(options.with_config(config).with_faults(faults));
        let metrics = operator.metrics();
        let setup = Setup {
            pools: Pools::new(PoolSettings::default(), Arc::new(metrics.postgres().clone())),
            fingerprints: Arc::clone(&self.key),
            tenants: Arc::clone(&self.tenants),
        };
        operator.with(GitlabController::new(setup), &self.namespace)
    }
}
