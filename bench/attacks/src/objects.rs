//! A tenant: a namespace, and the objects that it makes there.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use stanchion_bench_env::{BenchEnv, DATABASE, PASSWORD};
use tokio::time::sleep;

/// A user that is not ready by then counts as one that never is.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct Tenant {
    client: Client,
    namespace: String,
    refused: AtomicUsize,
}

impl Tenant {
    pub(crate) async fn new(env: &BenchEnv, purpose: &str) -> Self {
        let namespace = env.cluster().namespace(purpose).await;
        let client = env.cluster().client().await;
        let tenant = Self {
            client,
            namespace,
            refused: AtomicUsize::new(0),
        };
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": PASSWORD },
            "stringData": { PASSWORD: "correct horse" },
        });
        tenant.create(secret).await;
        tenant
    }

    pub(crate) async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let api = self.api(&object);
        // If the API server rejects the object, the attack has failed; the benchmark counts it and still measures the
        // other tenant.
        if api.create(&PostParams::default(), &object).await.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of its objects that the API server has rejected.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Makes users one after the other and returns the longest time until one is Ready, if all are in time.
    pub(crate) async fn users_ready(&self, numbers: Range<usize>) -> Option<Duration> {
        let mut longest = Duration::ZERO;
        for number in numbers {
            let start = Instant::now();
            let user = user(&format!("{}-{number}", self.namespace));
            self.create(user.clone()).await;
            let object: DynamicObject = serde_json::from_value(user).expect("a user");
            let (api, name) = (self.api(&object), object.metadata.name.expect("a name"));
            loop {
                let found = api.get_status(&name).await;
                if found.is_ok_and(|object| is_ready(&object.data)) {
                    break;
                }
                if start.elapsed() > DEADLINE {
                    return None;
                }
                sleep(Duration::from_millis(20)).await;
            }
            longest = longest.max(start.elapsed());
        }
        Some(longest)
    }

    fn api(&self, object: &DynamicObject) -> Api<DynamicObject> {
        let types = object.types.as_ref().expect("a kind");
        let (group, version) = types
            .api_version
            .split_once('/')
            .unwrap_or(("", &types.api_version));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind)
    }
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn user(name: &str) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1",
        "kind": "PostgresUser",
        "metadata": { "name": name },
        "spec": {
            "username": name.replace('-', "_"),
            "database": DATABASE,
            "privileges": ["CONNECT"],
            "passwordSecretRef": { "name": PASSWORD },
        },
    })
}
