//! The test environment: a namespace, a PostgreSQL and an S3 with their Secrets, and an operator in this process.

mod objects;
mod pods;

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};
use stanchion_kernel::Scope;
use stanchion_kernel::admission::FailurePolicy;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_supabase::{ProjectController, Setup};
use stanchion_testenv::{ServedWebhooks, TestNamespace, TestOperator};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, any};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::s3::S3;
use tokio::sync::OnceCell;

pub(crate) use objects::is_running;
pub(crate) use pods::{Pod, container};
pub(crate) use stanchion_testenv::{Running, condition};

use crate::database_env::{DatabaseEnv, KEY};

/// Everything that a project needs.
pub(crate) struct TestEnv {
    pub(crate) base: TestNamespace,
    pub(crate) db_env: Arc<DatabaseEnv>,
    pub(crate) s3: S3,
    /// The images that the administrator allows.
    pub(crate) allowed_images: Vec<String>,
    /// The connections of the operator's process.
    pub(crate) pools: Pools,
}

impl Deref for TestEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.base
    }
}

impl TestEnv {
    /// With the Secrets `db` and `s3`.
    pub(crate) async fn new() -> Self {
        Self::on(DatabaseEnv::new(any()).await).await
    }

    /// The same on an existing server.
    pub(crate) async fn on(db_env: impl Into<Arc<DatabaseEnv>>) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let base = TestNamespace::new("supabase").await;
        CRDS.get_or_init(async || base.cluster.install_crds(stanchion_api::crds()).await)
            .await;
        let env = Self {
            base,
            db_env: db_env.into(),
            s3: S3::start().await,
            allowed_images: Vec::new(),
            pools: Pools::new(PoolSettings::default(), Arc::new(())),
        };
        env.secret("db", env.database_secret()).await;
        env.secret("s3", env.storage_secret()).await;
        env
    }

    pub(crate) fn database_secret(&self) -> Value {
        self.secret_for(&self.db_env.database)
    }

    /// The administrator's Secret for another database of the server.
    pub(crate) fn secret_for(&self, database: &str) -> Value {
        json!({
            "host": "127.0.0.1", "port": self.db_env.server.port().to_string(), "database": database,
            "username": ADMIN, "password": ADMIN_PASSWORD,
        })
    }

    /// The proxy between projects and their database from now on.
    pub(crate) async fn proxy(&self) -> Proxy {
        let proxy = Proxy::postgres(self.db_env.server.address()).await;
        let mut secret = self.database_secret();
        secret["port"] = json!(proxy.port().to_string());
        self.secret("db", secret).await;
        proxy
    }

    pub(crate) fn storage_secret(&self) -> Value {
        json!({
            "endpoint": self.s3.endpoint(), "region": S3::REGION, "bucket": self.s3.bucket(),
            "accessKeyId": self.s3.access_key(), "secretAccessKey": self.s3.secret_key(),
        })
    }

    /// Starts an operator for this namespace, and waits until its caches are synced: it would read objects that are
    /// created earlier twice.
    pub(crate) async fn operator(&self) -> Running {
        self.build(&Faults::new()).await.start_and_sync().await
    }

    /// An operator that does not run yet.
    pub(crate) async fn build(&self, faults: &Faults) -> TestOperator {
        let setup = Setup {
            pools: self.pools.clone(),
            fingerprints: Arc::clone(&KEY),
            allowed_images: self.allowed_images.clone(),
        };
        let options = self.operator_options().await.with_faults(faults);
        TestOperator::new(options).with(ProjectController::new(setup), &self.namespace)
    }

    /// Serves the webhooks of projects for this namespace.
    pub(crate) async fn serve(&self) -> ServedWebhooks {
        let scopes = [Scope::Namespace(self.namespace.clone())];
        let webhooks = stanchion_supabase::webhooks(&self.client, &scopes);
        self.serve_webhooks(webhooks, FailurePolicy::Fail).await
    }
}
