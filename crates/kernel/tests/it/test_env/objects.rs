//! What a user does with widgets and Secrets, and sees of them.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stanchion_testenv::objects::Kind;
use stanchion_testkit::faults::Call;

use super::{Running, TestEnv, Thing, Widget, WidgetSpec, reading};

/// The widget and the Secret whose events show that all earlier ones were received.
const FENCE: &str = "fence";

impl TestEnv {
    /// Creates a widget.
    pub(crate) async fn widget(&self, name: &str, spec: WidgetSpec) -> Widget {
        let widget = Widget::new(name, spec);
        self.api().create(&PostParams::default(), &widget).await.unwrap()
    }

    /// Changes fields of a widget's spec.
    pub(crate) async fn respec(&self, name: &str, fields: Value) -> Widget {
        self.merge(name, json!({ "spec": fields })).await
    }

    /// Merges a patch into an object, as another client.
    pub(crate) async fn merge<K: Kind>(&self, name: &str, patch: Value) -> K {
        let params = PatchParams {
            field_manager: Some("somebody".into()),
            ..PatchParams::default()
        };
        let api: Api<K> = self.api();
        api.patch(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    /// Applies a Secret with a password.
    pub(crate) async fn password(&self, name: &str, password: &str) {
        self.secret(name, json!({ "password": password })).await;
    }

    /// The events about this widget, oldest first: reason, note, and count.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String, i32)> {
        let reported = |event: Event| {
            let count = event.series.map_or(1, |series| series.count);
            (
                event.reason.unwrap_or_default(),
                event.note.unwrap_or_default(),
                count,
            )
        };
        self.events_about(name).await.into_iter().map(reported).collect()
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
            self.password(FENCE, "first").await;
            self.widget(FENCE, reading(FENCE)).await;
        }
        let size = self.world.thing(FENCE).map_or(2, |thing| thing.size + 1);
        self.respec(FENCE, json!({ "size": size })).await;
        expect("the widgets to be heard", &|| {
            self.world.thing(FENCE).is_some_and(|thing| thing.size == size)
        })
        .await;
        self.password(FENCE, &format!("for {size}")).await;
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

/// All writes of an operator so far except those about the fence: method, resource, name, subresource.
pub(crate) fn writes_of(operator: &Running) -> Vec<String> {
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
    let calls = operator.faults.writes();
    let others = calls.iter().filter(|call| !call.target.name.starts_with(FENCE));
    others.map(shown).collect()
}
