//! The cluster, the server, the objects, and what the operator does to them.

use std::path::Path;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_api::user::PostgresUser;
use stanchion_testkit::cluster::{Audit, Cluster};
use stanchion_testkit::postgres::{Postgres, Version};
use stanchion_testkit::process::{Launch, Process};
use stanchion_testkit::scratch::Scratch;
use tokio::time::sleep;

/// Long enough without a write that the work is done, and not only between two passes.
const QUIET: Duration = Duration::from_secs(5);
const PASSWORD: &str = "password";

/// Everything that the operator stands on.
pub(crate) struct Bed {
    cluster: Cluster,
    server: Postgres,
    namespace: String,
    client: Client,
    scratch: Scratch,
}

/// A moment to count from.
pub(crate) struct Mark<'a> {
    audit: Audit<'a>,
    entries: usize,
}

/// What the operator did.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) writes: usize,
    pub(crate) reads: usize,
    pub(crate) statements: usize,
    /// Some of what should not be there.
    pub(crate) examples: Vec<String>,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let (cluster, server) = tokio::join!(Cluster::start(), Postgres::start(Version::V15));
        cluster.install_crds(stanchion_api::crds()).await;
        let namespace = cluster.namespace("idle").await;
        Self {
            client: cluster.client().await,
            scratch: Scratch::new("stanchion-bench-").expect("a directory"),
            namespace,
            cluster,
            server,
        }
    }

    /// Makes the objects, and the Secret that all of them refer to.
    pub(crate) async fn create(&self, objects: usize) {
        let secret = json!({ "metadata": { "name": PASSWORD }, "stringData": { PASSWORD: "correct horse" } });
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .expect("a Secret");
        let users = self.users();
        let create = |number| {
            let users = users.clone();
            async move {
                let user = serde_json::from_value(user(number)).expect("a PostgresUser");
                users
                    .create(&PostParams::default(), &user)
                    .await
                    .expect("a PostgresUser");
            }
        };
        stream::iter(0..objects)
            .map(create)
            .buffer_unordered(16)
            .collect::<()>()
            .await;
    }

    /// Starts the operator.
    pub(crate) fn operator(&self, binary: &Path) -> Process {
        let anywhere = "127.0.0.1:0";
        Launch::new(binary, self.scratch.path().join("log"))
            .args(["run", "--controllers", "user", "--no-webhooks"])
            .args(["--health-addr", anywhere, "--metrics-addr", anywhere])
            .env("KUBECONFIG", self.cluster.kubeconfig_path())
            .env("STANCHION_POSTGRES_URL", self.server.url("postgres"))
            .spawn()
            .expect("the operator starts")
    }

    /// Waits until all objects are ready.
    pub(crate) async fn converge(&self, objects: usize) {
        loop {
            let listed = self.users().list(&ListParams::default()).await.expect("a list");
            let is_ready = |user: &&PostgresUser| {
                let conditions = user.status.iter().flat_map(|status| &status.conditions);
                conditions
                    .into_iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            };
            if listed.items.iter().filter(is_ready).count() == objects {
                return;
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until the operator has done everything that follows from that.
    pub(crate) async fn quiet(&self) {
        loop {
            let mark = self.mark();
            sleep(QUIET).await;
            let counted = self.count(&mark).await;
            if counted.writes + counted.statements == 0 {
                return;
            }
        }
    }

    pub(crate) fn mark(&self) -> Mark<'_> {
        Mark {
            audit: self.cluster.audit(),
            entries: self.server.log().entries().len(),
        }
    }

    /// What the operator did since.
    pub(crate) async fn count(&self, mark: &Mark<'_>) -> Counted {
        let requests = mark
            .audit
            .requests()
            .await
            .filter(|request| request.user_agent.starts_with("stanchion/"));
        let writes = requests.clone().writes();
        let log = self.server.log();
        let entries = log.entries().iter().skip(mark.entries);
        let statements: Vec<&str> = entries.filter_map(|entry| entry.statement()).collect();
        let written = writes
            .list()
            .iter()
            .map(|write| format!("{} {}", write.verb, write.uri));
        let asked = statements.iter().map(ToString::to_string);
        Counted {
            writes: writes.count(),
            reads: requests.count() - writes.count(),
            statements: statements.len(),
            examples: written.take(5).chain(asked.take(5)).collect(),
        }
    }

    fn users(&self) -> Api<PostgresUser> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn user(number: usize) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1",
        "kind": "PostgresUser",
        "metadata": { "name": format!("user-{number}") },
        "spec": {
            "username": format!("user_{number}"),
            "database": "postgres",
            "privileges": ["CONNECT"],
            "passwordSecretRef": { "name": PASSWORD },
        },
    })
}
