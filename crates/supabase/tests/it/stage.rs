//! A whole stage: a namespace, a PostgreSQL and an S3 with their Secrets, and the operator in this process.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_supabase::{ProjectController, Setup};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::{Call, Faults};
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::Version;
use stanchion_testkit::s3::S3;
use stanchion_testkit::wait::{self, Wait};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

use crate::bed::Bed;

/// How long anything may take: the machines are slow and busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// Everything that a project stands on.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) bed: Bed,
    pub(crate) s3: S3,
    cluster: &'static Cluster,
    log: OperatorLog,
}

impl Stage {
    /// With the Secrets `db` and `s3`.
    pub(crate) async fn new() -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(stanchion_api::crds()).await)
            .await;
        let stage = Self {
            client: cluster.client().await,
            namespace: cluster.namespace("supabase").await,
            bed: Bed::new(Version::V15).await,
            s3: S3::start().await,
            cluster,
            log: OperatorLog::in_memory(),
        };
        stage.secret("db", stage.database_secret()).await;
        stage.secret("s3", stage.storage_secret()).await;
        stage
    }

    pub(crate) fn database_secret(&self) -> Value {
        let target = self.bed.target();
        let url = self.bed.server.url(&self.bed.database);
        let password = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('@')?.0.split_once(':'))
            .map_or("", |(_, password)| password);
        json!({
            "host": target.host(), "port": target.port().to_string(), "database": target.database(),
            "username": target.user(), "password": password,
        })
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

    /// Applies the smallest project, with `more` merged over its spec.
    pub(crate) async fn project(&self, name: &str, more: Value) -> SupabaseProject {
        let mut spec = json!({
            "projectId": name,
            "database": { "secretRef": { "name": "db" }, "sslMode": "disable" },
            "storage": { "secretRef": { "name": "s3" } },
        });
        merge(&mut spec, more);
        let project = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": name }, "spec": spec,
        });
        self.apply(name, &project).await
    }

    /// Merges a patch into an object, as a person would.
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

    /// Starts an operator for this namespace.
    pub(crate) async fn operator(&self) -> Running {
        let (faults, metrics) = (Faults::new(), Metrics::new("test"));
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(faults.clone())];
        let client = client::build(self.cluster.config().await, &metrics, &options).unwrap();
        let environment = Environment {
            client,
            metrics,
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        let setup = Setup {
            pools: Pools::new(PoolSettings::default(), Arc::new(())),
        };
        operator.add(
            ProjectController::new(setup),
            &Scope::Namespace(self.namespace.clone()),
        );
        Running {
            task: tokio::spawn(operator.run().with_subscriber(self.log.dispatch())),
            faults,
        }
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(PATIENCE).showing(&self.log)
    }

    /// Waits until the project is as described.
    pub(crate) async fn until(
        &self,
        name: &str,
        is: impl Fn(&SupabaseProject) -> bool + Send,
    ) -> SupabaseProject {
        Box::pin(self.wait().until(&self.api(), name, is)).await
    }

    /// Waits until the project runs, for its present generation.
    pub(crate) async fn running(&self, name: &str) -> SupabaseProject {
        Box::pin(self.until(name, is_running)).await
    }
}

/// Whether the project runs, for its present generation.
pub(crate) fn is_running(project: &SupabaseProject) -> bool {
    project.status.as_ref().is_some_and(|status| {
        status.phase == Some(Phase::Running) && status.observed_generation == project.metadata.generation
    })
}

/// A condition's status and reason, if it speaks of the present generation.
pub(crate) fn condition(project: &SupabaseProject, kind: &str) -> Option<(String, String)> {
    let conditions = &project.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    (found.observed_generation == project.metadata.generation)
        .then(|| (found.status.clone(), found.reason.clone()))
}

/// An operator that runs; dropped, it is killed where it stands.
pub(crate) struct Running {
    task: JoinHandle<()>,
    pub(crate) faults: Faults,
}

impl Running {
    /// The calls that a project has cost, in order: watches and their lists are opened once, whatever there is.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = |call: &Call| {
            let target = &call.target;
            format!(
                "{} {} {} {}",
                call.method, target.resource, target.name, target.subresource
            )
        };
        let calls = self.faults.calls();
        let of_projects = calls.iter().filter(|call| !call.target.name.is_empty());
        of_projects.map(text).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, more) => *into = more,
    }
}
