//! An operator that runs the toy in a namespace of a real cluster, until it is dropped.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings, Synced};
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::{Reconciler, Scope};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::{Call, Faults};
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::wait::{self, Wait};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::instrument::WithSubscriber as _;

use super::{Thing, Toy, Widget, WidgetSpec, World, crd};
use crate::telemetry::scrape::Scrape;

/// Deadline for everything that should happen at once.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The widget and the Secret whose events show that all earlier ones were received.
const FENCE: &str = "fence";

/// As in production, except that transient problems are retried sooner.
pub(crate) fn settings() -> Settings {
    Settings {
        backoff: Backoff {
            first: Duration::from_millis(50),
            most: Duration::from_secs(1),
        },
        ..Settings::default()
    }
}

/// The environment of an operator with this client.
pub(crate) fn environment(client: Client, metrics: &Metrics, settings: Settings) -> Environment {
    Environment {
        client,
        metrics: metrics.clone(),
        instance: "a-replica".into(),
        settings,
        shutdown: CancellationToken::new(),
    }
}

/// A namespace with widgets, and the world outside it.
pub(crate) struct Bed {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) world: World,
}

impl Bed {
    pub(crate) async fn new(prefix: &str) -> Self {
        let cluster = Cluster::shared().await;
        cluster.install_crds([crd()]).await;
        Self {
            cluster,
            namespace: cluster.namespace(prefix).await,
            client: cluster.client().await,
            world: World::default(),
        }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a widget.
    pub(crate) async fn widget(&self, name: &str, spec: WidgetSpec) -> Widget {
        let widget = Widget::new(name, spec);
        self.api().create(&PostParams::default(), &widget).await.unwrap()
    }

    /// Changes fields of a widget's spec.
    pub(crate) async fn respec(&self, name: &str, fields: serde_json::Value) -> Widget {
        self.merge(name, json!({ "spec": fields })).await
    }

    /// Merges a patch into an object, as another client.
    pub(crate) async fn merge<K>(&self, name: &str, patch: serde_json::Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let params = PatchParams {
            field_manager: Some("somebody".into()),
            ..PatchParams::default()
        };
        let api: Api<K> = self.api();
        api.patch(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    /// Makes or changes a Secret.
    pub(crate) async fn secret(&self, name: &str, password: &str) {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            string_data: Some([("password".to_owned(), password.to_owned())].into()),
            ..Secret::default()
        };
        let params = PatchParams::apply("somebody").force();
        let api: Api<Secret> = self.api();
        api.patch(name, &params, &Patch::Apply(&secret)).await.unwrap();
    }

    /// Deletes an object.
    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = self.api();
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The events about this widget, oldest first: reason, note, and count.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String, i32)> {
        let listed = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let mut events = listed.items;
        events.retain(|event| event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(name));
        events.sort_by_key(|event| event.event_time.clone());
        let told = |event: Event| {
            let count = event.series.map_or(1, |series| series.count);
            (
                event.reason.unwrap_or_default(),
                event.note.unwrap_or_default(),
                count,
            )
        };
        events.into_iter().map(told).collect()
    }

    /// Starts an operator as administrator.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(self.cluster.config().await, settings())
    }

    /// Starts an operator with these credentials and settings.
    pub(crate) fn operator_with(&self, config: Config, settings: Settings) -> Running {
        let world = self.world.clone();
        self.start(config, settings, Toy { world })
    }

    /// Starts an operator of another controller.
    pub(crate) fn start<R: Reconciler>(&self, config: Config, settings: Settings, reconciler: R) -> Running {
        let (faults, metrics, log) = (Faults::new(), Metrics::new("test"), OperatorLog::in_memory());
        let options = Options::new("toy").with_layer(faults.clone());
        let client = client::build(config, &metrics, &options).unwrap();
        let environment = environment(client, &metrics, settings);
        let shutdown = environment.shutdown.clone();
        let operator = self.assemble_with(environment, reconciler);
        let synced = operator.synced();
        let task = tokio::spawn(operator.run().with_subscriber(log.dispatch()));
        Running {
            faults,
            metrics,
            synced,
            shutdown,
            log,
            controller: R::NAME,
            task: AbortOnDropHandle::new(task),
        }
    }

    /// An operator for this namespace that does not run yet.
    pub(crate) fn assemble(&self, environment: Environment) -> Operator {
        let world = self.world.clone();
        self.assemble_with(environment, Toy { world })
    }

    fn assemble_with<R: Reconciler>(&self, environment: Environment, reconciler: R) -> Operator {
        let mut operator = Operator::new(environment);
        operator.add(reconciler, &Scope::Namespace(self.namespace.clone()));
        operator
    }

    /// Waits until a widget satisfies a condition.
    pub(crate) async fn until(
        &self,
        operator: &Running,
        name: &str,
        condition: impl Fn(&Widget) -> bool + Send,
    ) -> Widget {
        operator
            .wait()
            .until(&self.api::<Widget>(), name, condition)
            .await
    }

    /// Waits until the widget is ready and the operator is idle.
    pub(crate) async fn settled(&self, operator: &Running, name: &str) -> Widget {
        self.until(operator, name, Widget::is_ready).await;
        self.flush(operator).await;
        self.api::<Widget>().get(name).await.unwrap()
    }

    /// Waits until the operator has received and processed everything from before this call.
    pub(crate) async fn flush(&self, operator: &Running) {
        self.heard(operator).await;
        operator.idle().await;
    }

    /// Waits until the operator has received everything from before this call. Each of its three watches is ordered: an
    /// operator that has reacted to something newer has received everything before it.
    pub(crate) async fn heard(&self, operator: &Running) {
        let expect = async |what: &str, condition: &(dyn Fn() -> bool + Sync)| {
            operator.wait().eventually(what, async || condition()).await;
        };
        let widgets: Api<Widget> = self.api();
        if widgets.get_opt(FENCE).await.unwrap().is_none() {
            self.secret(FENCE, "first").await;
            let spec = WidgetSpec {
                size: 1,
                secret_ref: Some(FENCE.into()),
                ..WidgetSpec::default()
            };
            self.widget(FENCE, spec).await;
        }
        let size = self.world.thing(FENCE).map_or(2, |thing| thing.size + 1);
        self.respec(FENCE, json!({ "size": size })).await;
        expect("the widgets to be heard", &|| {
            self.world.thing(FENCE).is_some_and(|thing| thing.size == size)
        })
        .await;
        self.secret(FENCE, &format!("for {size}")).await;
        let wanted = Thing {
            size,
            password: Some(format!("for {size}")),
        };
        expect("the Secrets to be heard", &|| {
            self.world.thing(FENCE).as_ref() == Some(&wanted)
        })
        .await;
        let maps: Api<ConfigMap> = self.api();
        let is_made = |map: &ConfigMap| {
            map.data
                .as_ref()
                .is_some_and(|data| data["size"] == size.to_string())
        };
        let child = operator.wait().until(&maps, FENCE, is_made).await;
        self.delete::<ConfigMap>(FENCE).await;
        let is_again = |map: &ConfigMap| map.metadata.uid != child.metadata.uid;
        operator.wait().until(&maps, FENCE, is_again).await;
        self.until(operator, FENCE, Widget::is_ready).await;
    }
}

/// An operator that runs until this is dropped, which equals SIGKILL.
pub(crate) struct Running {
    pub(crate) faults: Faults,
    pub(crate) metrics: Metrics,
    pub(crate) synced: Synced,
    pub(crate) shutdown: CancellationToken,
    pub(crate) log: OperatorLog,
    controller: &'static str,
    task: AbortOnDropHandle<()>,
}

impl Running {
    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(DEADLINE).showing(&self.log)
    }

    /// Waits for the end of an operator that is shutting down.
    pub(crate) async fn ended(self) {
        self.task.await.unwrap();
    }

    /// All writes so far except those about the fence: method, resource, name, subresource.
    pub(crate) fn writes(&self) -> Vec<String> {
        let shown = |call: &Call| {
            let target = &call.target;
            let name = if target.resource == "events" {
                ""
            } else {
                &target.name
            };
            format!(
                "{} {} {name} {}",
                call.method, target.resource, target.subresource
            )
            .trim_end()
            .to_owned()
        };
        let calls = self.faults.writes();
        let others = calls.iter().filter(|call| !call.target.name.starts_with(FENCE));
        others.map(shown).collect()
    }

    /// The metrics, as a scraper gets them.
    pub(crate) fn scrape(&self) -> Scrape {
        Scrape::parse(&self.metrics.encode())
    }

    /// Waits until nothing is waiting or running, and every request has been answered.
    pub(crate) async fn idle(&self) {
        let is_idle = async || self.waiting_and_running() == (0, 0);
        self.wait().eventually("the operator to be idle", is_idle).await;
        self.faults.settled().await;
    }

    fn waiting_and_running(&self) -> (u64, u64) {
        let (scrape, name) = (self.scrape(), self.controller);
        (
            scrape.count(&format!(
                r#"workqueue_depth{{name="{name}",controller="{name}"}}"#
            )),
            scrape.count(&format!(
                r#"controller_runtime_active_workers{{controller="{name}"}}"#
            )),
        )
    }
}
