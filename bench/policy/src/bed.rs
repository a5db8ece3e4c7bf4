//! The cluster, the databases, the policies, and what an operator does with them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_testkit::cluster::{Audit, Cluster, Grant, User};
use stanchion_testkit::postgres::{Postgres, Version};
use stanchion_testkit::process::{Launch, Process};
use stanchion_testkit::scratch::Scratch;
use tokio::time::sleep;

/// Who is measured.
pub(crate) enum Operator {
    Ours(PathBuf),
    /// And where its definitions are.
    Rival(PathBuf, PathBuf),
}

/// Everything that an operator stands on.
pub(crate) struct Bed {
    cluster: Cluster,
    server: Postgres,
    namespace: String,
    client: Client,
    user: User,
    scratch: Scratch,
}

/// A moment to count from.
pub(crate) struct Mark<'a> {
    audit: Audit<'a>,
    entries: usize,
}

/// What the operator did.
pub(crate) struct Counted {
    pub(crate) requests: usize,
    pub(crate) writes: usize,
    pub(crate) statements: usize,
}

impl Bed {
    pub(crate) async fn new(operator: &Operator) -> Self {
        let (cluster, server) = tokio::join!(Cluster::start(), Postgres::start(Version::V15));
        let crds = match operator {
            Operator::Ours(_) => stanchion_api::crds(),
            Operator::Rival(_, folder) => definitions(folder),
        };
        cluster.install_crds(crds).await;
        let namespace = cluster.namespace("bench").await;
        let everything = PolicyRule {
            api_groups: Some(vec!["*".into()]),
            resources: Some(vec!["*".into()]),
            verbs: vec!["*".into()],
            ..PolicyRule::default()
        };
        let user = cluster
            .user(&namespace, "operator", &[Grant::Everywhere(vec![everything])])
            .await;
        Self {
            client: cluster.client().await,
            scratch: Scratch::new("stanchion-bench-").expect("a directory"),
            user,
            namespace,
            cluster,
            server,
        }
    }

    /// Makes the databases, a Secret for each, and the policies.
    pub(crate) async fn create(&self, policies: usize, databases: usize) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        for number in 0..databases {
            let name = format!("bench_{number}");
            self.server
                .execute("postgres", &format!("CREATE DATABASE {name}"))
                .await;
            let secret = json!({
                "metadata": { "name": format!("db-{number}") },
                "stringData": { "DATABASE_URL": format!("{}?application_name=bench", self.server.url(&name)) },
            });
            let secret = serde_json::from_value(secret).expect("a Secret");
            secrets
                .create(&PostParams::default(), &secret)
                .await
                .expect("a Secret");
        }
        for number in 0..policies {
            let policy = serde_json::from_value(policy(number, number % databases)).expect("a policy");
            self.policies()
                .create(&PostParams::default(), &policy)
                .await
                .expect("a policy");
        }
    }

    pub(crate) fn start(&self, operator: &Operator) -> Process {
        let anywhere = "127.0.0.1:0";
        let log = self.scratch.path().join("log");
        let launch = match operator {
            Operator::Ours(binary) => Launch::new(binary, log)
                .args(["run", "--controllers", "policy", "--no-webhooks"])
                .args(["--health-addr", anywhere, "--metrics-addr", anywhere]),
            Operator::Rival(binary, _) => Launch::new(binary, log)
                .env("OPERATOR_HTTP_ADDR", anywhere)
                .env("OTEL_METRICS_EXPORTER", "none"),
        };
        launch
            .env("KUBECONFIG", self.user.kubeconfig_path())
            .env("POD_NAMESPACE", &self.namespace)
            .spawn()
            .expect("the operator starts")
    }

    /// Waits until all policies are ready.
    pub(crate) async fn converge(&self, policies: usize) {
        loop {
            let listed = self
                .policies()
                .list(&ListParams::default())
                .await
                .expect("a list");
            let is_ready = |policy: &&DynamicObject| {
                let conditions = policy
                    .data
                    .pointer("/status/conditions")
                    .and_then(Value::as_array);
                conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            };
            if listed.items.iter().filter(is_ready).count() == policies {
                return;
            }
            sleep(Duration::from_millis(250)).await;
        }
    }

    pub(crate) fn mark(&self) -> Mark<'_> {
        Mark {
            audit: self.cluster.audit(),
            entries: self.server.log().entries().len(),
        }
    }

    /// What the operator did since. A watch that is opened anew counts, one that is open does not.
    pub(crate) async fn count(&self, mark: &Mark<'_>) -> Counted {
        let requests = mark.audit.requests().await.of_user(self.user.name());
        let requests = requests.filter(|request| request.resource != "leases");
        let log = self.server.log();
        let entries = log.entries().iter().skip(mark.entries);
        let statements = entries.filter(|entry| entry.application == "bench" && entry.statement().is_some());
        Counted {
            writes: requests.clone().writes().count(),
            requests: requests.count(),
            statements: statements.count(),
        }
    }

    fn policies(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("pgroles.io", "v1alpha1", "PostgresPolicy");
        let resource = ApiResource::from_gvk_with_plural(&kind, "postgrespolicies");
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }
}

fn definitions(folder: &PathBuf) -> Vec<CustomResourceDefinition> {
    let files = fs::read_dir(folder).expect("a folder with definitions");
    let text = |path: PathBuf| fs::read_to_string(path).expect("a definition");
    files
        .map(|file| serde_saphyr::from_str(&text(file.expect("a file").path())).expect("a definition"))
        .collect()
}

/// Two schemas with two profiles each.
fn policy(number: usize, database: usize) -> Value {
    let grants = |privileges: Value| {
        json!([
            { "privileges": ["USAGE"], "object": { "type": "schema" } },
            { "privileges": privileges, "object": { "type": "table", "name": "*" } },
        ])
    };
    let schema = |n: usize| json!({ "name": format!("s{number}_{n}"), "profiles": ["reader", "writer"] });
    json!({
        "apiVersion": "pgroles.io/v1alpha1",
        "kind": "PostgresPolicy",
        "metadata": { "name": format!("policy-{number}") },
        "spec": {
            "connection": { "secretRef": { "name": format!("db-{database}") } },
            "interval": "1m",
            "default_owner": "postgres",
            "profiles": {
                "reader": { "grants": grants(json!(["SELECT"])) },
                "writer": { "grants": grants(json!(["SELECT", "INSERT"])) },
            },
            "schemas": [schema(0), schema(1)],
        },
    })
}
