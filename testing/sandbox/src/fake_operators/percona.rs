//! Simulates Percona's operator: a cluster becomes ready, and each of its users gets a Secret with credentials.

use futures::FutureExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::Part;
use super::scene::{Scene, condition, is_said, number, password, text};

pub(super) const CLUSTER: Part = Part {
    group: "pgv2.percona.com",
    version: "v2",
    kind: "PerconaPGCluster",
    plural: "perconapgclusters",
    play: |scene, object| cluster(scene, object).boxed(),
};

async fn cluster(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    if object.metadata.deletion_timestamp.is_some() || is_said(&object, "/status/state", "ready") {
        return Ok(());
    }
    let size: i64 = sum(&object.data["spec"]["instances"], "/replicas");
    let pooler = object.data.pointer("/spec/proxy/pgBouncer");
    let poolers = pooler.map(|pooler| number(pooler, "/replicas", 1));
    scene
        .say(&object, status(&object, "initializing", 0, size, poolers))
        .await?;
    scene.wait().await;
    for user in object.data["spec"]["users"].as_array().into_iter().flatten() {
        let name = format!("{}-pguser-{}", object.name_any(), text(user, "/name"));
        login(&scene, &object, &name, user, poolers.is_some()).await?;
    }
    scene
        .say(&object, status(&object, "ready", size, size, poolers))
        .await
}

fn status(object: &DynamicObject, state: &str, ready: i64, size: i64, poolers: Option<i64>) -> Value {
    let is_ready = if ready == size { "True" } else { "False" };
    let mut status = json!({
        "state": state,
        "host": host(object, if poolers.is_some() { "pgbouncer" } else { "primary" }),
        "observedGeneration": object.metadata.generation,
        "postgres": { "ready": ready, "size": size, "version": object.data["spec"]["postgresVersion"] },
        "conditions": [condition(object, "Simulated", is_ready, "Simulated", "simulated: no database runs")],
    });
    if let Some(size) = poolers {
        status["pgbouncer"] = json!({ "ready": if state == "ready" { size } else { 0 }, "size": size });
    }
    status
}

/// The Secret of a user. An existing password stays.
async fn login(
    scene: &Scene,
    object: &DynamicObject,
    name: &str,
    user: &Value,
    has_pooler: bool,
) -> Result<(), kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), &object.namespace().unwrap_or_default());
    let kept = secrets
        .get_opt(name)
        .await?
        .and_then(|secret| secret.data?.remove("password"));
    let password = kept.map_or_else(password, |ByteString(kept)| {
        String::from_utf8_lossy(&kept).into_owned()
    });
    let (role, database) = (text(user, "/name"), text(user, "/databases/0"));
    let mut data = vec![
        ("user", role.to_owned()),
        ("dbname", database.to_owned()),
        ("password", password.clone()),
    ];
    let uri = |host: &str| format!("postgresql://{role}:{password}@{host}:5432/{database}");
    let primary = host(object, "primary");
    data.extend([
        ("uri", uri(&primary)),
        ("host", primary),
        ("port", "5432".to_owned()),
    ]);
    if has_pooler {
        let pooler = host(object, "pgbouncer");
        data.extend([
            ("pgbouncer-uri", uri(&pooler)),
            ("pgbouncer-host", pooler),
            ("pgbouncer-port", "5432".to_owned()),
        ]);
    }
    let data = data
        .into_iter()
        .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    let secret = Secret {
        data: Some(data.collect()),
        ..Secret::default()
    };
    scene.own(object, name, secret).await
}

fn host(object: &DynamicObject, service: &str) -> String {
    format!(
        "{}-{service}.{}.svc",
        object.name_any(),
        object.namespace().unwrap_or_default()
    )
}

fn sum(list: &Value, path: &str) -> i64 {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| number(item, path, 1))
        .sum()
}
