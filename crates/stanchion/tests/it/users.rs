//! `PostgresUser` objects with the whole binary.

use std::path::PathBuf;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use serde_json::{Value, json};
use stanchion_api::user::PostgresUser;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, unique};

use crate::operator::Operator;

/// A file for `--postgres-url-file`.
pub(crate) struct UrlFile {
    scratch: Scratch,
    path: PathBuf,
}

impl UrlFile {
    pub(crate) fn new(url: &str) -> Self {
        let scratch = Scratch::new("stanchion-url-").unwrap();
        let path = scratch.path().join("url");
        let file = Self { scratch, path };
        file.write(url);
        file
    }

    /// In one step, like the kubelet.
    pub(crate) fn write(&self, url: &str) {
        let new = self.scratch.path().join("new");
        std::fs::write(&new, format!("{url}\n")).unwrap();
        std::fs::rename(new, &self.path).unwrap();
    }

    pub(crate) fn arguments(&self) -> [&str; 2] {
        ["--postgres-url-file", self.path.to_str().unwrap()]
    }
}

/// The manifest of a user.
pub(crate) fn postgres_user(name: &str, role: &str, database: &Database<'_>) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1",
        "kind": "PostgresUser",
        "metadata": { "name": name },
        "spec": {
            "username": role,
            "database": database.name(),
            "privileges": ["CONNECT"],
            "password": { "generate": {} },
        },
    })
}

/// Waits until the object is ready.
pub(crate) async fn ready(operator: &Operator, cluster: &Cluster, namespace: &str, name: &str) {
    let users: Api<PostgresUser> = Api::namespaced(cluster.client().await, namespace);
    operator
        .wait_for("the user to be ready", async || {
            let user = users.get(name).await.map_err(|error| error.to_string())?;
            let conditions = user.status.map(|status| status.conditions).unwrap_or_default();
            let ready = |it: &Condition| it.type_ == "Ready" && it.status == "True";
            if conditions.iter().any(ready) {
                Ok(())
            } else {
                Err(format!("{conditions:?}"))
            }
        })
        .await;
}

#[tokio::test]
async fn a_file_with_another_server_is_read_without_a_restart() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("file").await;
    let database = Database::of(Version::V15).await;
    let file = UrlFile::new(&format!(
        "postgres://nobody:hunter2-unseen@127.0.0.1:{}/none",
        port::free()
    ));
    let mut arguments = vec![
        "--namespace",
        &namespace,
        "--operator-namespace",
        &namespace,
        "--no-webhooks",
    ];
    arguments.extend(file.arguments());
    let operator = Operator::start(&cluster.kubeconfig_path(), &arguments);
    operator.ready().await;
    let role = unique::name("u");
    cluster
        .apply(&postgres_user("app", &role, &database).to_string(), &namespace)
        .await;
    operator
        .wait_for("a failed connection", async || {
            operator
                .metric(r#"stanchion_problems{controller="user",class="transient"}"#)
                .await
                == Some(1.0)
        })
        .await;
    file.write(&database.url());
    ready(&operator, cluster, &namespace, "app").await;
    assert!(!operator.log().contains("hunter2-unseen"), "{}", operator.log());
    operator.stop().await;
}
