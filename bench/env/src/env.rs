//! The cluster, the server, the objects, and the counters of an operator's work.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_testkit::cluster::{Audit, Cluster, Request};
use stanchion_testkit::postgres::{Postgres, Version};
use stanchion_testkit::process::{Launch, Process};
use stanchion_testkit::scratch::Scratch;
use tokio::time::sleep;

use crate::connections;

/// After this time without a write the work is done, and not only between two passes.
const QUIET: Duration = Duration::from_secs(5);
/// The administrators distinguish the operators in the server's log.
pub const OURS: &str = "ours";
/// Another operator's administrator.
pub const RIVAL: &str = "rival";
/// The password of the administrators.
pub const PASSWORD: &str = "password";

/// The database of the users.
pub const DATABASE: &str = "app";

/// The environment of an operator.
pub struct BenchEnv {
    cluster: Cluster,
    server: Postgres,
    namespace: String,
    client: Client,
    scratch: Scratch,
}

/// A point in time to count from.
pub struct Checkpoint<'a> {
    audit: Audit<'a>,
    entries: usize,
}

/// The counted work of an operator.
#[derive(Default)]
pub struct Counted {
    /// Requests that write.
    pub writes: usize,
    /// All other requests.
    pub reads: usize,
    /// SQL statements. Those with a password are not logged, and not counted.
    pub statements: usize,
    /// Maximum number of concurrent connections to the server.
    pub connections: usize,
    /// Examples of unexpected work.
    pub examples: Vec<String>,
}

impl Counted {
    /// All requests.
    pub fn calls(&self) -> usize {
        self.writes + self.reads
    }
}

/// An operator without progress for this long is given up: it may have ended.
const STANDSTILL: Duration = Duration::from_mins(5);

impl BenchEnv {
    /// A cluster with our CRDs and a separate server.
    pub async fn new(purpose: &str) -> Self {
        let env = Self::bare(purpose).await;
        env.cluster.install_crds(stanchion_api::crds()).await;
        env
    }

    /// The same without our CRDs.
    pub async fn bare(purpose: &str) -> Self {
        let server = Postgres::builder(Version::V15)
            .setting("log_disconnections", "on")
            .start();
        let (cluster, server) = tokio::join!(Cluster::start(), server);
        for login in [OURS, RIVAL] {
            let make = format!("CREATE ROLE {login} LOGIN SUPERUSER PASSWORD '{PASSWORD}'");
            server.execute("postgres", &make).await;
        }
        let make = format!("CREATE DATABASE {DATABASE}");
        server.execute("postgres", &make).await;
        let namespace = cluster.namespace(purpose).await;
        Self {
            client: cluster.client().await,
            scratch: Scratch::new("stanchion-bench-").expect("a directory"),
            namespace,
            cluster,
            server,
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The server.
    pub fn server(&self) -> &Postgres {
        &self.server
    }

    /// The namespace of the objects.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Creates users with these numbers, and a Secret for all of them.
    pub async fn create_users(&self, numbers: impl IntoIterator<Item = usize>) {
        let secret = json!({ "metadata": { "name": PASSWORD }, "stringData": { PASSWORD: "correct horse" } });
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        match secrets.create(&PostParams::default(), &secret).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other.expect("a Secret")),
        }
        self.create(numbers.into_iter().map(user)).await;
    }

    /// Creates objects.
    pub async fn create(&self, objects: impl IntoIterator<Item = Value>) {
        let create = |object: Value| async move {
            let api = self.api(&object);
            let object = serde_json::from_value(object).expect("an object");
            api.create(&PostParams::default(), &object)
                .await
                .expect("an object that is let in");
        };
        stream::iter(objects)
            .map(create)
            .buffer_unordered(16)
            .collect::<()>()
            .await;
    }

    /// Starts the operator.
    pub fn operator(&self, binary: &Path) -> Process {
        self.operator_with(binary, &["--controllers", "user", "--no-webhooks"])
    }

    /// Starts the operator with these arguments.
    pub fn operator_with(&self, binary: &Path, arguments: &[&str]) -> Process {
        let anywhere = "127.0.0.1:0";
        self.launch(binary, "stanchion")
            .args(["run"].iter().chain(arguments))
            .args(["--health-addr", anywhere, "--metrics-addr", anywhere])
            .env(
                "STANCHION_POSTGRES_URL",
                self.server.url_of(OURS, PASSWORD, "postgres"),
            )
            .spawn()
            .expect("the operator starts")
    }

    /// A program with access to the cluster, and a log of this name.
    pub fn launch(&self, binary: &Path, name: &str) -> Launch {
        Launch::new(binary, self.scratch.path().join(name)).env("KUBECONFIG", self.cluster.kubeconfig_path())
    }

    /// Waits until this many objects of the kind of `example` are ready.
    pub async fn converge(&self, example: &Value, objects: usize, is_ready: impl Fn(&Value) -> bool) {
        let api = self.api(example);
        let (mut most, mut since) = (0, Instant::now());
        loop {
            let listed = api.list(&ListParams::default()).await.expect("a list");
            let ready = |object: &&DynamicObject| is_ready(&object.data);
            let ready = listed.items.iter().filter(ready).count();
            if ready >= objects {
                return;
            }
            if ready > most {
                (most, since) = (ready, Instant::now());
            }
            assert!(
                since.elapsed() < STANDSTILL,
                "{ready} of {objects} are ready, and no more for {STANDSTILL:?}: has the operator ended?"
            );
            sleep(between_lists(objects)).await;
        }
    }

    /// Waits until this many objects of the kind of `example` have the condition Ready.
    pub async fn ready(&self, example: &Value, objects: usize) {
        let is_ready = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        self.converge(example, objects, is_ready).await;
    }

    /// Waits until this many users are ready.
    pub async fn users_ready(&self, objects: usize) {
        self.ready(&user(0), objects).await;
    }

    /// Waits until the operator is idle, in the cluster and in the database.
    pub async fn quiet(&self) {
        self.until_none(|counted| counted.writes + counted.statements)
            .await;
    }

    /// The same for the cluster alone, for an operator that queries its databases all the time.
    pub async fn unwritten(&self) {
        self.until_none(|counted| counted.writes).await;
    }

    async fn until_none(&self, of: impl Fn(&Counted) -> usize) {
        loop {
            let checkpoint = self.checkpoint();
            sleep(QUIET).await;
            if of(&self.count(&checkpoint).await) == 0 {
                return;
            }
        }
    }

    /// The current time.
    pub fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint {
            audit: self.cluster.audit(),
            entries: self.server.log().entries().len(),
        }
    }

    /// The operator's work since then.
    pub async fn count(&self, checkpoint: &Checkpoint<'_>) -> Counted {
        self.count_of(checkpoint, "stanchion/", OURS).await
    }

    /// The work of an operator with this user agent and this administrator since then.
    pub async fn count_of(&self, checkpoint: &Checkpoint<'_>, agent: &str, login: &str) -> Counted {
        self.count_where(checkpoint, |request| request.user_agent.starts_with(agent), login)
            .await
    }

    /// The work of an operator with these requests and this administrator since then.
    pub async fn count_where(
        &self,
        checkpoint: &Checkpoint<'_>,
        is_its: impl Fn(&Request) -> bool,
        login: &str,
    ) -> Counted {
        let requests = checkpoint.audit.requests().await.filter(is_its);
        let writes = requests.clone().writes();
        let log = self.server.log();
        let entries = log.entries().get(checkpoint.entries..).unwrap_or_default();
        let its = entries.iter().filter(|entry| entry.user == login);
        let statements: Vec<&str> = its.filter_map(|entry| entry.statement()).collect();
        let written = writes
            .list()
            .iter()
            .map(|write| format!("{} {}", write.verb, write.uri));
        let asked = statements.iter().map(ToString::to_string);
        Counted {
            writes: writes.count(),
            reads: requests.count() - writes.count(),
            statements: statements.len(),
            connections: connections::most(log.entries(), login),
            examples: written.take(5).chain(asked.take(5)).collect(),
        }
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |field: &str| object[field].as_str().expect("a kind").to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = GroupVersionKind::gvk(group, version, &kind);
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &ApiResource::from_gvk(&kind),
        )
    }
}

/// A list of many objects is work for the API server, which is measured, too.
fn between_lists(objects: usize) -> Duration {
    Duration::from_millis(u64::try_from(objects.clamp(100, 1000)).unwrap_or(1000))
}

fn user(number: usize) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1",
        "kind": "PostgresUser",
        "metadata": { "name": format!("user-{number}") },
        "spec": {
            "username": format!("user_{number}"),
            "database": DATABASE,
            "privileges": ["CONNECT"],
            "passwordSecretRef": { "name": PASSWORD },
        },
    })
}
