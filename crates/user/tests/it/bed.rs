//! A test bed: a namespace, a database, and the operator in this process, restricted to the namespace.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools, Target, TlsMode};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::wait::Wait;
use stanchion_testkit::{unique, wait};
use stanchion_user::{DefaultInstance, InstanceController, Setup, UserController};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

/// How long anything may take: the machines are slow and busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A namespace and a database.
pub(crate) struct Bed {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
    /// The name of the operator's sessions, which tells them from those of other tests.
    pub(crate) application: String,
    /// What the operators say, for the moment a test fails.
    pub(crate) log: OperatorLog,
}

/// How an operator is started.
pub(crate) struct How {
    /// How it gets to the server.
    pub(crate) admin: Target,
    /// What happens to its requests.
    pub(crate) faults: Faults,
    /// How it retries.
    pub(crate) backoff: Backoff,
    /// Whom the API server takes it for.
    pub(crate) config: Config,
}

impl Bed {
    /// A fresh namespace, and a fresh database on a server of this version.
    pub(crate) async fn new(version: Version) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(stanchion_api::crds()).await)
            .await;
        Self {
            cluster,
            namespace: cluster.namespace("user").await,
            client: cluster.client().await,
            database: Database::of(version).await,
            key: Arc::new(FingerprintKey::generate()),
            application: unique::name("operator"),
            log: OperatorLog::in_memory(),
        }
    }

    /// The server's superuser, in the database that every server has.
    pub(crate) fn superuser(&self) -> Target {
        self.target(&self.database.server().url("postgres"))
    }

    /// An administrator who is no superuser. The test's database is theirs.
    pub(crate) async fn plain_admin(&self) -> Target {
        let (name, server) = (role_name(), self.database.server());
        let database = self.database.name();
        self.database
            .execute(&format!(
                "CREATE ROLE {name} LOGIN CREATEROLE CREATEDB PASSWORD 'admin'; ALTER DATABASE {database} OWNER TO {name}"
            ))
            .await;
        self.target(&server.url_of(&name, "admin", "postgres"))
    }

    fn target(&self, url: &str) -> Target {
        let target = Target::parse(&url.into()).unwrap();
        target.with_application_name(&self.application)
    }

    /// A proxy in front of the server, and the superuser's way through it.
    pub(crate) async fn proxy(&self) -> (Proxy, Target) {
        let server = self.database.server();
        let proxy = Proxy::postgres(server.address()).await;
        let direct = format!("127.0.0.1:{}", server.port());
        let url = server
            .url("postgres")
            .replace(&direct, &proxy.address().to_string());
        // Through TLS the proxy would see nothing.
        let target = self.target(&url).with_tls(TlsMode::Disable, None);
        (proxy, target)
    }

    /// As the operator usually is.
    pub(crate) async fn how(&self) -> How {
        How {
            admin: self.superuser(),
            faults: Faults::new(),
            backoff: Backoff::default(),
            config: self.cluster.config().await,
        }
    }

    /// The operator, with the server's superuser as its administrator.
    pub(crate) async fn operator(&self) -> Running {
        self.start(self.how().await)
    }

    /// The operator, with this administrator and these faults.
    pub(crate) async fn operator_with(&self, admin: Target, faults: &Faults) -> Running {
        let faults = faults.clone();
        self.start(How {
            admin,
            faults,
            ..self.how().await
        })
    }

    /// Starts an operator.
    pub(crate) fn start(&self, how: How) -> Running {
        let (operator, metrics) = self.build(how);
        Running {
            task: tokio::spawn(operator.run().with_subscriber(self.log.dispatch())),
            metrics,
        }
    }

    /// An operator that is not running yet.
    pub(crate) fn build(&self, how: How) -> (Operator, Metrics) {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(how.faults)];
        let client = client::build(how.config, &metrics, &options).unwrap();
        let setup = Setup {
            default_instance: DefaultInstance::new(Some(how.admin)),
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
        let scope = Scope::Namespace(self.namespace.clone());
        operator.add(UserController::new(setup.clone()), &scope);
        operator.add(InstanceController::new(setup), &scope);
        (operator, metrics)
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(PATIENCE).showing(&self.log)
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
        self.wait()
            .until(&self.users(), name, |user: &PostgresUser| {
                condition(user, "Ready") == Some(("True".into(), "UserCreated".into()))
            })
            .await
    }

    /// Waits until a condition has this status and reason for the present generation.
    pub(crate) async fn condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> PostgresUser {
        self.wait()
            .until(&self.users(), name, |user: &PostgresUser| {
                condition(user, kind) == Some((status.into(), reason.into()))
            })
            .await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.users().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.wait().gone(&self.users(), name).await;
    }

    /// Merges a patch into an object, as a person would.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.users()
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Asks for a pass, and waits until one has ended.
    pub(crate) async fn look_again(&self, operator: &Running, name: &str) {
        operator.idle().await;
        let before = operator.passes();
        let value = unique::name("now");
        let patch = json!({ "metadata": { "annotations": { "db.example.com/reconcile-at": value } } });
        self.patch(name, patch).await;
        wait::eventually(PATIENCE, "a pass", async || operator.passes() > before).await;
        operator.idle().await;
    }

    /// The words that the role holds on a database, in alphabetical order.
    pub(crate) async fn words(&self, role: &str, database: &str) -> String {
        let sql = format!(
            "SELECT coalesce(string_agg(a.privilege_type, ',' ORDER BY a.privilege_type), '') FROM pg_database d, aclexplode(d.datacl) a \
             JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = '{role}' AND d.datname = '{database}'"
        );
        self.server_one(&sql).await
    }

    /// A value from the database that every server has.
    pub(crate) async fn server_one(&self, sql: &str) -> String {
        let value = self.database.server().scalar("postgres", sql).await;
        value.unwrap_or_default()
    }

    /// What the operator's sessions have executed so far, in all databases.
    pub(crate) fn statements(&self) -> Vec<String> {
        let log = self.database.server().log();
        let ours = log
            .entries()
            .iter()
            .filter(|entry| entry.application == self.application);
        ours.filter_map(|entry| entry.statement())
            .map(str::to_owned)
            .collect()
    }

    /// Those of [`Self::statements`] that are not about reading. Statements with a password are not logged.
    pub(crate) fn sql_writes(&self) -> Vec<String> {
        let reading = ["SELECT", "BEGIN", "SET", "COMMIT", "ROLLBACK"];
        let mut all = self.statements();
        all.retain(|sql| {
            let mut parts = sql.split(';').map(str::trim).filter(|part| !part.is_empty());
            !parts.all(|part| reading.iter().any(|word| part.starts_with(word)))
        });
        all
    }

    /// A value that one query returns.
    pub(crate) async fn one(&self, sql: &str) -> String {
        self.database.scalar(sql).await.unwrap_or_default()
    }

    /// Whether the role is there.
    pub(crate) async fn has_role(&self, role: &str) -> bool {
        let sql = format!("SELECT count(*) FROM pg_roles WHERE rolname = '{role}'");
        self.server_one(&sql).await == "1"
    }

    pub(crate) async fn logs_in(&self, role: &str, password: &str) -> bool {
        self.database.connect(role, password).await.is_ok()
    }
}

/// A role name that nobody else uses: roles belong to the whole server.
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

/// A backoff that is as steep as the usual one and much shorter.
pub(crate) fn quick() -> Backoff {
    Backoff {
        first: Duration::from_millis(50),
        most: Duration::from_millis(1600),
    }
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
    /// How many passes over users have ended.
    pub(crate) fn passes(&self) -> u64 {
        self.total("controller_runtime_reconcile_total{controller=\"user\"")
    }

    /// Waits until no pass is running.
    pub(crate) async fn idle(&self) {
        let workers = "controller_runtime_active_workers{controller=\"user\"";
        wait::eventually(PATIENCE, "all passes to end", async || self.total(workers) == 0).await;
    }

    /// The sum of all numbers whose name and labels begin like this.
    pub(crate) fn total(&self, start: &str) -> u64 {
        let text = self.metrics.encode();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

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
