//! The test environment: namespaces, a database, and an operator in this process, restricted to the namespaces.

mod objects;
mod sql;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use stanchion_kernel::Scope;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_policy::{PolicyController, Setup};
use stanchion_postgres::lock::TURN;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_testenv::{TestNamespace, TestOperator};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::{Database, Version, any};
use stanchion_testkit::unique;
use tokio::sync::OnceCell;

pub(crate) use stanchion_testenv::{Running, WAIT_TIMEOUT, condition, message};

/// Two namespaces and a database.
pub(crate) struct TestEnv {
    pub(crate) base: TestNamespace,
    pub(crate) other: String,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
    /// The application name of the operator's sessions, which separates them from those of other tests.
    pub(crate) application: String,
    /// The prefix of all role names of this test: roles belong to the whole server.
    pub(crate) prefix: String,
    /// How long an operator waits for its turn at a database.
    pub(crate) turn: Duration,
}

impl Deref for TestEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.base
    }
}

impl TestEnv {
    /// Uses a server version that is always the same for a test.
    pub(crate) async fn new() -> Self {
        Self::on(any()).await
    }

    /// Creates new namespaces, and a new database on a server of this version.
    pub(crate) async fn on(version: Version) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let base = TestNamespace::new("policy").await;
        CRDS.get_or_init(async || base.cluster.install_crds(stanchion_api::crds()).await)
            .await;
        Self {
            other: base.cluster.namespace("policy").await,
            base,
            database: Database::of(version).await,
            key: Arc::new(FingerprintKey::generate()),
            application: unique::name("operator"),
            prefix: unique::name("r").replace('-', "_"),
            turn: TURN,
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
        self.build(faults).await.0.start()
    }

    /// An operator that is not running yet, and its connections.
    pub(crate) async fn build(&self, faults: &Faults) -> (TestOperator, Pools) {
        let options = self.operator_options().await.with_faults(faults);
        let mut operator = TestOperator::new(options);
        let metrics = operator.metrics();
        let pools = Pools::new(PoolSettings::default(), Arc::new(metrics.postgres().clone()));
        let setup = Setup {
            turn: self.turn,
            ..Setup::new(pools.clone(), Arc::clone(&self.key), metrics)
        };
        for namespace in [&self.namespace, &self.other] {
            let scope = Scope::Namespace(namespace.clone());
            operator.add(PolicyController::new(setup.clone(), scope.clone()), &scope);
        }
        (operator, pools)
    }
}
