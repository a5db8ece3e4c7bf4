//! Users, and how long a change of one takes.

use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use stanchion_bench_env::{DATABASE, PASSWORD};
use tokio::time::sleep;

/// A change that is not followed by then counts as one that never is.
const DEADLINE: Duration = Duration::from_mins(2);

const GROUP: &str = "db.example.com";

/// Objects of a kind in a namespace.
pub(crate) fn api(
    client: &Client,
    namespace: &str,
    group: &str,
    version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), namespace, &kind)
}

/// The users of a namespace.
pub(crate) fn users(client: &Client, namespace: &str) -> Api<DynamicObject> {
    api(client, namespace, GROUP, "v1alpha1", "PostgresUser")
}

/// Creates an object.
pub(crate) async fn create(client: &Client, namespace: &str, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let types = object.types.clone().expect("a kind");
    let (group, version) = types
        .api_version
        .split_once('/')
        .unwrap_or(("", &types.api_version));
    let objects = api(client, namespace, group, version, &types.kind);
    objects
        .create(&PostParams::default(), &object)
        .await
        .expect("an object that is let in");
}

/// A Secret.
pub(crate) fn secret(name: &str, values: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values })
}

/// A server.
pub(crate) fn instance(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": name },
        "spec": {
            "host": "127.0.0.1", "port": port, "adminSecretRef": { "name": "admin" }, "tls": { "mode": "disable" },
        },
    })
}

/// A user, of the default server unless an instance is named.
pub(crate) fn user(name: &str, instance: Option<&str>) -> Value {
    let mut user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name },
        "spec": {
            "username": name.replace('-', "_"), "database": DATABASE, "privileges": ["CONNECT"],
            "passwordSecretRef": { "name": PASSWORD }, "role": { "connectionLimit": 1 },
        },
    });
    if let Some(instance) = instance {
        user["spec"]["instanceRef"] = json!({ "name": instance });
    }
    user
}

/// Changes a user, and returns the generation that this leads to.
pub(crate) async fn change(users: &Api<DynamicObject>, name: &str, limit: usize) -> Option<i64> {
    let patch = json!({ "spec": { "role": { "connectionLimit": limit } } });
    let changed = users
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    changed.ok()?.metadata.generation
}

/// The time until the status says that this generation of a user is ready.
pub(crate) async fn followed(users: &Api<DynamicObject>, name: &str, generation: i64) -> Option<Duration> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        let found = users.get_status(name).await;
        if found.is_ok_and(|user| is_ready(&user.data, generation)) {
            return Some(begun.elapsed());
        }
        sleep(Duration::from_millis(20)).await;
    }
    None
}

fn is_ready(object: &Value, generation: i64) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == "True"
            && condition["observedGeneration"] == generation
    })
}
