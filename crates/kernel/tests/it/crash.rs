//! The crash test of the kernel: an operator that is killed after any of its writes, or before it gets the response,
//! leaves behind what its successor needs to reach the same end.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::crash::{Scenario, crash_at_every_write, objects};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::running::Latest;
use stanchion_testkit::wait;

use crate::toy::{Bed, DEADLINE, Widget, WidgetSpec, environment, settings};

/// Three widgets, one to create, one to change and one to delete, all of them pending when the operator starts.
struct Life;

/// One run.
struct Told {
    bed: Bed,
    operator: Latest,
}

impl Scenario for Life {
    type Run = Told;

    async fn set_up(&self) -> Told {
        let bed = Bed::new("crash").await;
        bed.secret("mine", "one").await;
        let spec = |size| WidgetSpec {
            size,
            secret_ref: Some("mine".into()),
            ..WidgetSpec::default()
        };
        for name in ["changed", "deleted"] {
            bed.widget(name, spec(1)).await;
        }
        let before = bed.operator().await;
        for name in ["changed", "deleted"] {
            bed.until(&before, name, Widget::is_ready).await;
        }
        before.shutdown.cancel();
        before.ended().await;
        bed.widget("made", spec(1)).await;
        bed.respec("changed", json!({ "size": 2 })).await;
        let api: Api<Widget> = bed.api();
        api.delete("deleted", &DeleteParams::default()).await.unwrap();
        Told {
            bed,
            operator: Latest::new("toy"),
        }
    }

    async fn operate(&self, Told { bed, operator }: &Told, faults: Faults) {
        let metrics = Metrics::new("test");
        let options = Options::new("toy").with_layer(faults);
        let client = client::build(bed.cluster.config().await, &metrics, &options).unwrap();
        let toy = bed.assemble(environment(client, &metrics, settings()));
        let _now = operator.runs(move || metrics.encode());
        toy.run().await;
    }

    async fn has_looked(&self, told: &Told) -> bool {
        told.operator.has_looked()
    }

    async fn converge(&self, Told { bed, .. }: &Told) {
        let api: Api<Widget> = bed.api();
        wait::until(&api, "made", DEADLINE, Widget::is_ready).await;
        wait::until(&api, "changed", DEADLINE, Widget::is_ready).await;
        wait::gone(&api, "deleted", DEADLINE).await;
        // The cluster's own part: the child is deleted with its owner.
        wait::gone(&bed.api::<ConfigMap>(), "deleted", DEADLINE).await;
    }

    async fn end_state(&self, Told { bed, .. }: &Told) -> Value {
        let things: Value = bed
            .world
            .things()
            .into_iter()
            .map(|(name, thing)| (name, json!([thing.size, thing.password])))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut maps = objects::<ConfigMap>(bed.client.clone(), &bed.namespace).await;
        // The cluster itself creates it at some point.
        maps.as_object_mut().unwrap().remove("kube-root-ca.crt");
        json!({
            "widgets": objects::<Widget>(bed.client.clone(), &bed.namespace).await,
            "children": maps,
            "secrets": objects::<Secret>(bed.client.clone(), &bed.namespace).await,
            "world": things,
        })
    }

    fn mask(&self, told: &Told, text: &str) -> String {
        text.replace(&told.bed.namespace, "<namespace>")
    }
}

#[tokio::test]
async fn an_operator_killed_at_any_write_reaches_the_same_end() {
    let report = crash_at_every_write(&Life).await;
    // Finalizer, child and status of the new one; child and status of the changed; finalizer of the deleted.
    assert_eq!(report.writes, 6, "{report}");
    assert_eq!(report.crashes, 13, "{report}");
}
