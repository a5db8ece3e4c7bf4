//! A test bed: a namespace, a database, and the operator in this process, restricted to the namespace.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools, Target};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::{unique, wait};
use stanchion_user::{DefaultInstance, InstanceController, Setup, UserController};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take: the machines are slow and busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A namespace and a database.
pub(crate) struct Bed {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
}

impl Bed {
    /// A fresh namespace, and a fresh database on a server of this version.
    pub(crate) async fn new(version: Version) -> Self {
        let cluster = Cluster::shared().await;
        cluster.install_crds(stanchion_api::crds()).await;
        Self {
            cluster,
            namespace: cluster.namespace("user").await,
            client: cluster.client().await,
            database: Database::of(version).await,
            key: Arc::new(FingerprintKey::generate()),
        }
    }

    /// The operator, with the server's superuser as its administrator.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(
            Target::parse(&self.database.url().into()).unwrap(),
            &Faults::new(),
        )
        .await
    }

    /// The operator, with this administrator and these faults.
    pub(crate) async fn operator_with(&self, admin: Target, faults: &Faults) -> Running {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(faults.clone())];
        let client = client::build(self.cluster.config().await, &metrics, &options).unwrap();
        let shutdown = CancellationToken::new();
        let pools = Pools::new(PoolSettings::default(), Arc::new(()));
        let setup = Setup {
            default_instance: DefaultInstance::new(Some(admin)),
            pools,
            fingerprints: Arc::clone(&self.key),
        };
        let environment = Environment {
            client,
            metrics: metrics.clone(),
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                ..Settings::default()
            },
            shutdown: shutdown.clone(),
        };
        let mut operator = Operator::new(environment);
        let scope = Scope::Namespace(self.namespace.clone());
        operator.add(UserController::new(setup.clone()), &scope);
        operator.add(InstanceController::new(setup), &scope);
        Running {
            task: tokio::spawn(operator.run()),
            metrics,
        }
    }

    pub(crate) fn users(&self) -> Api<PostgresUser> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a Secret with a password.
    pub(crate) async fn password(&self, name: &str, password: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name }, "stringData": { "password": password },
        });
        let params = PatchParams::apply("test").force();
        self.secrets()
            .patch(name, &params, &Patch::Apply(&secret))
            .await
            .unwrap();
    }

    /// Applies a user whose spec is the guide's, with `more` merged over it.
    pub(crate) async fn user(&self, name: &str, username: &str, more: Value) -> PostgresUser {
        let mut user = json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
            "metadata": { "name": name },
            "spec": {
                "username": username, "database": self.database.name(), "privileges": ["CONNECT"],
                "passwordSecretRef": { "name": name },
            },
        });
        merge(&mut user["spec"], more);
        let params = PatchParams::apply("test").force();
        self.users()
            .patch(name, &params, &Patch::Apply(&user))
            .await
            .unwrap()
    }

    /// Waits until the object is ready for its present generation.
    pub(crate) async fn ready(&self, name: &str) -> PostgresUser {
        wait::until(&self.users(), name, PATIENCE, |user: &PostgresUser| {
            condition(user, "Ready") == Some(("True".into(), "UserCreated".into()))
        })
        .await
    }

    /// Waits until a condition has this status and reason for the present generation.
    pub(crate) async fn condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> PostgresUser {
        wait::until(&self.users(), name, PATIENCE, |user: &PostgresUser| {
            condition(user, kind) == Some((status.into(), reason.into()))
        })
        .await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.users().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn gone(&self, name: &str) {
        wait::gone(&self.users(), name, PATIENCE).await;
    }

    /// Whether the role is there.
    pub(crate) async fn has_role(&self, role: &str) -> bool {
        let sql = format!("SELECT count(*) FROM pg_roles WHERE rolname = '{role}'");
        self.database.scalar(&sql).await.as_deref() == Some("1")
    }

    pub(crate) async fn logs_in(&self, role: &str, password: &str) -> bool {
        self.database.connect(role, password).await.is_ok()
    }
}

/// A role name that nobody else uses: roles belong to the whole server.
pub(crate) fn role_name() -> String {
    unique::name("u").replace('-', "_")
}

/// A condition's status and reason, if it speaks of the present generation.
pub(crate) fn condition(user: &PostgresUser, kind: &str) -> Option<(String, String)> {
    let conditions = &user.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    (found.observed_generation == user.metadata.generation)
        .then(|| (found.status.clone(), found.reason.clone()))
}

/// An operator that runs; dropped, it is killed where it stands.
pub(crate) struct Running {
    task: JoinHandle<()>,
    pub(crate) metrics: Metrics,
}

impl Running {
    /// Kills it, as SIGKILL would: nothing of it goes on.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn merge(into: &mut Value, more: Value) {
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
