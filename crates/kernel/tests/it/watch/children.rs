//! Traps 1 and 2: kube's shared streams drop deletions, and lose an event when an object is created and deleted faster
//! than it is reconciled.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stanchion_kernel::watch::MANAGED_BY;

use crate::telemetry::scrape::Scrape;
use crate::test_env::{TestEnv, Widget, WidgetSpec};

fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

/// Trap 1.
#[tokio::test]
async fn a_child_that_is_deleted_comes_back() {
    let env = TestEnv::new("children").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    let maps: Api<ConfigMap> = env.api();
    for _ in 0..5 {
        let child = maps.get("one").await.unwrap();
        env.delete::<ConfigMap>("one").await;
        let is_new = |map: &ConfigMap| map.metadata.uid != child.metadata.uid;
        operator.wait().until(&maps, "one", is_new).await;
    }
}

/// Trap 2, for children: the last event decides, however many come before it.
#[tokio::test]
async fn a_child_that_comes_and_goes_is_there_in_the_end() {
    let env = TestEnv::new("children").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    let maps: Api<ConfigMap> = env.api();
    for round in 0..20 {
        // Whatever the operator does in between, the last event of the child is its deletion.
        let _ = maps.delete("one", &DeleteParams::default()).await;
        let labels = json!({ MANAGED_BY.0: MANAGED_BY.1 });
        let foreign = json!({ "metadata": { "name": "one", "labels": labels } });
        let foreign: ConfigMap = serde_json::from_value(foreign).unwrap();
        let _ = maps.create(&PostParams::default(), &foreign).await;
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        let _ = maps.delete("one", &DeleteParams::default()).await;
    }
    env.settled(&operator, "one").await;
    let child = maps.get("one").await.unwrap();
    assert_eq!(child.data.unwrap()["size"], "1");
    assert!(child.metadata.owner_references.is_some());
}

/// Trap 2, for the objects themselves: created, changed, deleted and created again faster than they are reconciled.
#[tokio::test]
async fn an_object_that_comes_and_goes_is_there_in_the_end() {
    let env = TestEnv::new("children").await;
    let operator = env.operator().await;
    let widgets: Api<Widget> = env.api();
    for size in 1..=10 {
        env.widget("one", sized(size)).await;
        env.respec("one", json!({ "size": size + 100 })).await;
        // With a finalizer the object is deleted when the operator releases it, and without one at once.
        let deleted = widgets.delete("one", &DeleteParams::default()).await.unwrap();
        if deleted.is_left() {
            operator.wait().gone(&widgets, "one").await;
            assert_eq!(
                env.world.thing("one"),
                None,
                "it is cleaned up before the object is gone"
            );
        }
    }
    env.widget("one", sized(7)).await;
    env.settled(&operator, "one").await;
    assert_eq!(env.world.thing("one").unwrap().size, 7);
    let child = env.api::<ConfigMap>().get("one").await.unwrap();
    assert_eq!(child.data.unwrap()["size"], "7");
    assert_eq!(
        env.world.concurrency().1,
        0,
        "one object never runs twice at once"
    );
}

/// The deletion of an owner's children is reported after the owner is gone. That must leave nothing behind.
#[tokio::test]
async fn objects_that_are_gone_leave_nothing_in_the_queue_or_the_gauges() {
    let env = TestEnv::new("children").await;
    for name in ["one", "two", "three"] {
        env.widget(name, sized(1)).await;
    }
    env.widget("invalid", sized(0)).await;
    let operator = env.operator().await;
    let widgets: Api<Widget> = env.api();
    env.settled(&operator, "three").await;
    env.until(&operator, "invalid", |widget| widget.fails_with("InvalidSize"))
        .await;
    let maps: Api<ConfigMap> = env.api();
    for name in ["one", "two", "three", "invalid"] {
        env.delete::<Widget>(name).await;
        operator.wait().gone(&widgets, name).await;
    }
    for name in ["one", "two", "three"] {
        operator.wait().gone(&maps, name).await;
    }
    env.flush(&operator).await;
    let scrape = Scrape::parse(&operator.metrics_text());
    assert_eq!(scrape.count(r#"workqueue_depth{name="toy",controller="toy"}"#), 0);
    assert_eq!(
        scrape.count(r#"stanchion_problems{controller="toy",class="permanent"}"#),
        0
    );
}
