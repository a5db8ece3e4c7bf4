//! The test environment: a namespace, a PostgreSQL and an S3 with their Secrets, and an operator in this process.

mod pods;
mod running;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_supabase::{ProjectController, Setup};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, any};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::s3::S3;
use stanchion_testkit::wait::{self, Wait};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

pub(crate) use pods::{Pod, container};
pub(crate) use running::Running;
pub(crate) use webhook::serve;

use crate::database_env::{DatabaseEnv, KEY};

/// The timeout of every wait: test machines are slow and busy.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// A backoff with the usual factor and a much shorter base.
const QUICK: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_millis(1600),
};

/// Everything that a project needs.
pub(crate) struct TestEnv {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) db_env: Arc<DatabaseEnv>,
    pub(crate) s3: S3,
    pub(crate) cluster: &'static Cluster,
    /// The images that the administrator allows.
    pub(crate) allowed_images: Vec<String>,
    /// The connections of the operator's process.
    pub(crate) pools: Pools,
    log: OperatorLog,
}

impl TestEnv {
    /// With the Secrets `db` and `s3`.
    pub(crate) async fn new() -> Self {
        Self::on(DatabaseEnv::new(any()).await).await
    }

    /// The same on an existing server.
    pub(crate) async fn on(db_env: impl Into<Arc<DatabaseEnv>>) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(stanchion_api::crds()).await)
            .await;
        let env = Self {
            client: cluster.client().await,
            namespace: cluster.namespace("supabase").await,
            db_env: db_env.into(),
            s3: S3::start().await,
            cluster,
            allowed_images: Vec::new(),
            pools: Pools::new(PoolSettings::default(), Arc::new(())),
            log: OperatorLog::in_memory(),
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

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a Secret.
    pub(crate) async fn secret(&self, name: &str, values: Value) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values,
        });
        self.apply::<Secret>(name, &secret).await;
    }

    pub(crate) async fn apply<K>(&self, name: &str, object: &Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let params = PatchParams::apply("test").force();
        let api: Api<K> = self.api();
        api.patch(name, &params, &Patch::Apply(object)).await.unwrap()
    }

    /// Applies the smallest project, with `more` merged into its spec.
    pub(crate) async fn project(&self, name: &str, more: Value) -> SupabaseProject {
        let mut spec = json!({
            "projectId": name,
            "database": { "secretRef": { "name": "db" }, "sslMode": "disable" },
            "storage": { "secretRef": { "name": "s3" } },
        });
        json_patch::merge(&mut spec, &more);
        let project = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": name }, "spec": spec,
        });
        self.apply(name, &project).await
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().get(name).await.unwrap()
    }

    /// All objects of a kind, by name.
    pub(crate) async fn all<K>(&self) -> BTreeMap<String, K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let all = self.api::<K>().list(&ListParams::default()).await.unwrap();
        all.into_iter()
            .map(|object| (object.name_any(), object))
            .collect()
    }

    /// The values of a Secret.
    pub(crate) async fn values(&self, name: &str) -> BTreeMap<String, String> {
        let data = self.get::<Secret>(name).await.data.unwrap_or_default();
        data.into_iter()
            .map(|(key, value)| (key, String::from_utf8(value.0).unwrap()))
            .collect()
    }

    /// The events of an object: type, reason and message of each.
    pub(crate) async fn events(&self, name: &str) -> Vec<[String; 3]> {
        let about = |event: &Event| {
            let regarding = event.regarding.as_ref()?;
            (regarding.name.as_deref() == Some(name)).then(|| {
                [&event.type_, &event.reason, &event.note].map(|text| text.clone().unwrap_or_default())
            })
        };
        self.all::<Event>().await.values().filter_map(about).collect()
    }

    /// Merges a patch into an object, as a user would.
    pub(crate) async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = self.api();
        let params = PatchParams::default();
        api.patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = self.api();
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Starts an operator for this namespace, and waits until its caches are synced: objects that are created in
    /// between would be read again.
    pub(crate) async fn operator(&self) -> Running {
        let faults = Faults::new();
        let (operator, metrics) = self.build(&faults).await;
        let readiness = operator.readiness();
        let task = tokio::spawn(operator.run().with_subscriber(self.log.dispatch()));
        readiness.wait().await;
        Running::new(task, faults, metrics)
    }

    /// An operator that does not run yet.
    pub(crate) async fn build(&self, faults: &Faults) -> (Operator, Metrics) {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(faults.clone())];
        let client = client::build(self.cluster.config().await, &metrics, &options).unwrap();
        let environment = Environment {
            client,
            metrics: metrics.clone(),
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                backoff: QUICK,
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        let setup = Setup {
            pools: self.pools.clone(),
            fingerprints: Arc::clone(&KEY),
            allowed_images: self.allowed_images.clone(),
        };
        operator.add(
            ProjectController::new(setup),
            &Scope::Namespace(self.namespace.clone()),
        );
        (operator, metrics)
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(WAIT_TIMEOUT).showing(&self.log)
    }

    /// Waits until the project satisfies a condition.
    pub(crate) async fn until(
        &self,
        name: &str,
        is: impl Fn(&SupabaseProject) -> bool + Send,
    ) -> SupabaseProject {
        Box::pin(self.wait().until(&self.api(), name, is)).await
    }

    /// Waits until the project's message is this one.
    pub(crate) async fn says(&self, name: &str, words: &str) -> SupabaseProject {
        let says = |project: &SupabaseProject| {
            let status = project.status.as_ref();
            status.is_some_and(|status| status.message.as_deref() == Some(words))
        };
        self.until(name, says).await
    }

    /// Waits until the project runs with its current generation.
    pub(crate) async fn running(&self, name: &str) -> SupabaseProject {
        Box::pin(self.until(name, is_running)).await
    }
}

/// Whether the project runs with its current generation.
pub(crate) fn is_running(project: &SupabaseProject) -> bool {
    project.status.as_ref().is_some_and(|status| {
        status.phase == Some(Phase::Running) && status.observed_generation == project.metadata.generation
    })
}

/// A condition's status and reason, if it is for the current generation.
pub(crate) fn condition(project: &SupabaseProject, kind: &str) -> Option<(String, String)> {
    let conditions = &project.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    (found.observed_generation == project.metadata.generation)
        .then(|| (found.status.clone(), found.reason.clone()))
}
