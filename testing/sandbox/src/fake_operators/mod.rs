//! Simulates other operators, for demos and for tests of the objects that are written for them.
//!
//! | module | operator |
//! |---|---|
//! | `flux` | Flux: a release becomes ready, and reports its version |
//! | `percona` | Percona's operator: a database becomes ready, and its users get passwords |
//! | `redis` | OT-CONTAINER-KIT's operator: each Redis gets its `StatefulSet` |
//! | `elasticsearch` | Elastic's operator |
//!
//! They are clients of the API like the real operators, so they work on any cluster. Nothing is installed and nothing
//! runs: they report the same status as the real operators, and every message says that it is simulated.

mod elasticsearch;
mod flux;
mod percona;
mod redis;
mod scene;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use scene::Scene;

/// Stand-ins for the CRDs of the other operators, one YAML stream per operator.
pub const DEFINITIONS: [&str; 4] = [
    include_str!("definitions/flux.yaml"),
    include_str!("definitions/percona.yaml"),
    include_str!("definitions/redis.yaml"),
    include_str!("definitions/elasticsearch.yaml"),
];

/// Retry delay after a failure.
const AGAIN: Duration = Duration::from_millis(500);

/// A kind, and the function that simulates its operator.
struct Part {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    play: Play,
}

/// Simulates the operator for one object. It is called after each change, and does nothing once everything is done.
type Play = fn(Scene, DynamicObject) -> BoxFuture<'static, Result<(), kube::Error>>;

/// All simulated kinds.
const PARTS: [&Part; 7] = [
    &flux::RELEASE,
    &flux::REPOSITORY,
    &percona::CLUSTER,
    &redis::ALONE,
    &redis::REPLICATION,
    &redis::SENTINEL,
    &elasticsearch::PART,
];

/// Returns the version of the application that a version of a chart installs; `None` for a chart that does not exist.
pub type Charts = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The simulated operators, before they start.
pub struct FakeOperators {
    client: Client,
    namespace: Option<String>,
    pace: Duration,
    charts: Charts,
}

impl FakeOperators {
    /// Simulated operators for all namespaces of this cluster, without delays. By default each version of a chart
    /// installs the version with the same number.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            namespace: None,
            pace: Duration::ZERO,
            charts: Arc::new(|chart| Some(chart.to_owned())),
        }
    }

    /// Restricts them to this namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The duration of each step.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// The versions that the charts install.
    #[must_use]
    pub fn charts(mut self, charts: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.charts = Arc::new(charts);
        self
    }

    /// Runs until it is stopped, or until the result is dropped.
    pub fn start(self, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for part in PARTS {
            let kind = GroupVersionKind::gvk(part.group, part.version, part.kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, part.plural);
            let api = match &self.namespace {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                None => Api::all_with(self.client.clone(), &resource),
            };
            let scene = Scene {
                client: self.client.clone(),
                resource,
                pace: self.pace,
                charts: self.charts.clone(),
            };
            let stop = stop.clone();
            tasks.spawn(async move {
                stop.run_until_cancelled(run(part.play, api, scene)).await;
            });
        }
        tasks
    }
}

async fn run(play: Play, api: Api<DynamicObject>, scene: Scene) {
    let controller = Controller::new_with(api, watcher::Config::default(), scene.resource.clone());
    let reconcile = move |object: Arc<DynamicObject>, scene: Arc<Scene>| async move {
        // The event may be older than our last write.
        let api = scene.api(&object.namespace().unwrap_or_default());
        if let Some(object) = api.get_opt(&object.name_any()).await? {
            play((*scene).clone(), object).await?;
        }
        Ok(Action::await_change())
    };
    let failed = |object: Arc<DynamicObject>, error: &kube::Error, _: Arc<Scene>| {
        tracing::debug!(object = object.name_any(), %error, "a played operator failed and tries again");
        Action::requeue(AGAIN)
    };
    let passes = controller.run(reconcile, failed, Arc::new(scene));
    passes.for_each(|_| std::future::ready(())).await;
}
