//! Finalizers and deletion on a real API server.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stanchion_kernel::driver::Settings;
use stanchion_kernel::lenient::Lenient;
use stanchion_kernel::{Class, finalizer};

use crate::test_env::{FINALIZER, TestEnv, Widget, WidgetSpec, settings, writes_of};

fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

fn finalizers(widget: &Widget) -> Vec<String> {
    widget.metadata.finalizers.clone().unwrap_or_default()
}

#[tokio::test]
async fn foreign_finalizers_are_untouched_and_ours_never_comes_back() {
    let env = TestEnv::new("finalizer").await;
    let mut widget = Widget::new("one", sized(1));
    widget.metadata.finalizers = Some(vec!["example.com/first".into()]);
    let widgets: Api<Widget> = env.api();
    widgets.create(&PostParams::default(), &widget).await.unwrap();
    let operator = env.operator().await;
    let widget = env.settled(&operator, "one").await;
    assert_eq!(finalizers(&widget), ["example.com/first", FINALIZER]);

    let more = json!(["example.com/first", FINALIZER, "example.com/last"]);
    env.merge::<Widget>("one", json!({ "metadata": { "finalizers": more } }))
        .await;
    env.delete::<Widget>("one").await;
    let is_released = |widget: &Widget| !finalizers(widget).contains(&FINALIZER.to_owned());
    let widget = env.until(&operator, "one", is_released).await;
    assert_eq!(finalizers(&widget), ["example.com/first", "example.com/last"]);
    assert_eq!(env.world.thing("one"), None);

    // Whatever happens to it now, the operator ignores it.
    let (changes, writes) = (env.world.changes(), writes_of(&operator).len());
    env.respec("one", json!({ "size": 2 })).await;
    env.delete::<ConfigMap>("one").await;
    env.flush(&operator).await;
    drop(operator);
    let operator = env.operator().await;
    env.flush(&operator).await;
    assert!(writes > 0);
    assert_eq!(writes_of(&operator), [""; 0]);
    let of_the_fences = 2 * 2;
    assert!(env.world.changes() <= changes + of_the_fences);
    assert_eq!(env.world.thing("one"), None);
    let widget = widgets.get("one").await.unwrap();
    assert_eq!(finalizers(&widget), ["example.com/first", "example.com/last"]);
    env.merge::<Widget>("one", json!({ "metadata": { "finalizers": null } }))
        .await;
    operator.wait().gone(&widgets, "one").await;
}

/// The finalizer is added before any external change: an object that is deleted half-way is cleaned up.
#[tokio::test]
async fn the_finalizer_comes_before_any_outside_work() {
    let env = TestEnv::new("finalizer").await;
    env.world.hold("one");
    let operator = env.operator().await;
    env.widget("one", sized(1)).await;
    let widget = env
        .until(&operator, "one", |widget| !finalizers(widget).is_empty())
        .await;
    assert_eq!(finalizers(&widget), [FINALIZER]);
    assert_eq!(env.world.thing("one"), None);
    env.delete::<Widget>("one").await;
    env.world.release("one");
    operator.wait().gone(&env.api::<Widget>(), "one").await;
    assert_eq!(env.world.thing("one"), None);
}

/// Without leader election, two replicas see the same deletion. One may have cleaned up when the other, which read the
/// object before, applies: that one then cleans up, too, although our finalizer is gone.
#[tokio::test]
async fn a_pass_that_applies_after_the_cleanup_of_another_replica_cleans_up() {
    let env = TestEnv::new("finalizer").await;
    let operator = env.operator().await;
    let theirs = |entries: &[&str]| json!({ "metadata": { "finalizers": entries } });
    env.world.hold("one");
    env.widget("one", sized(1)).await;
    env.until(&operator, "one", |widget| !finalizers(widget).is_empty())
        .await;
    env.merge::<Widget>("one", theirs(&[FINALIZER, "example.com/theirs"]))
        .await;
    env.delete::<Widget>("one").await;
    // The other replica ends its cleanup with this.
    env.merge::<Widget>("one", theirs(&["example.com/theirs"])).await;
    let changes = env.world.changes();
    env.world.release("one");
    env.flush(&operator).await;
    assert_eq!(env.world.thing("one"), None);
    let of_the_fence = 2;
    assert!(
        env.world.changes() > changes + of_the_fence,
        "the thing is created and removed"
    );
    env.merge::<Widget>("one", theirs(&[])).await;
    operator.wait().gone(&env.api::<Widget>(), "one").await;
}

/// The same, but an object of the same name is created before the late cleanup has its turn. The new one creates nothing, so
/// what is there is its predecessor's.
#[tokio::test]
async fn a_late_cleanup_is_not_lost_when_the_name_is_used_again() {
    let env = TestEnv::new("finalizer").await;
    // One pass at a time: the pass over "two" keeps the next one over "one" waiting.
    let settings = Settings {
        concurrency: 1,
        ..settings()
    };
    let operator = env.operator_with(env.cluster.config().await, settings);
    let theirs = |entries: &[&str]| json!({ "metadata": { "finalizers": entries } });
    env.world.hold("one");
    env.world.hold("two");
    env.widget("one", sized(1)).await;
    env.until(&operator, "one", |widget| !finalizers(widget).is_empty())
        .await;
    env.widget("two", sized(1)).await;
    env.merge::<Widget>("one", theirs(&[FINALIZER, "example.com/theirs"]))
        .await;
    env.delete::<Widget>("one").await;
    env.merge::<Widget>("one", theirs(&["example.com/theirs"])).await;
    env.world.release("one");
    operator
        .wait()
        .eventually("the pass over two", async || env.world.running("two") == 1)
        .await;
    assert!(env.world.thing("one").is_some(), "it is applied late");
    env.merge::<Widget>("one", theirs(&[])).await;
    operator.wait().gone(&env.api::<Widget>(), "one").await;
    env.widget("one", sized(0)).await;
    env.world.release("two");
    env.until(&operator, "one", |widget| widget.fails_with("InvalidSize"))
        .await;
    env.flush(&operator).await;
    assert_eq!(env.world.thing("one"), None);
}

#[tokio::test]
async fn an_object_is_deletable_whatever_it_waits_for() {
    let env = TestEnv::new("finalizer").await;
    env.password("mine", "one").await;
    let with_secret = WidgetSpec {
        secret_ref: Some("mine".into()),
        ..sized(1)
    };
    env.widget("secretless", with_secret).await;
    env.widget("invalid", sized(1)).await;
    let operator = env.operator().await;
    env.settled(&operator, "secretless").await;
    env.settled(&operator, "invalid").await;
    env.delete::<Secret>("mine").await;
    env.until(&operator, "secretless", |widget| {
        widget.fails_with("SecretMissing")
    })
    .await;
    env.respec("invalid", json!({ "size": 0 })).await;
    env.until(&operator, "invalid", |widget| widget.fails_with("InvalidSize"))
        .await;
    let widgets: Api<Widget> = env.api();
    for name in ["secretless", "invalid"] {
        env.delete::<Widget>(name).await;
        operator.wait().gone(&widgets, name).await;
        assert_eq!(env.world.thing(name), None);
    }
}

#[tokio::test]
async fn a_cleanup_that_fails_keeps_the_object_and_says_why() {
    let env = TestEnv::new("finalizer").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    env.world.fails("one", Some(Class::Transient));
    env.delete::<Widget>("one").await;
    let widget = env
        .until(&operator, "one", |widget| widget.fails_with("Outage"))
        .await;
    assert_eq!(finalizers(&widget), [FINALIZER]);
    env.world.fails("one", None);
    operator.wait().gone(&env.api::<Widget>(), "one").await;
    assert_eq!(env.world.thing("one"), None);
}

#[tokio::test]
async fn a_namespace_with_objects_in_it_can_be_deleted() {
    let env = TestEnv::new("finalizer").await;
    env.password("mine", "one").await;
    for number in 0..5 {
        let spec = WidgetSpec {
            secret_ref: Some("mine".into()),
            ..sized(1)
        };
        env.widget(&format!("w{number}"), spec).await;
    }
    let operator = env.operator().await;
    for number in 0..5 {
        env.until(&operator, &format!("w{number}"), Widget::is_ready)
            .await;
    }
    let namespaces: Api<Namespace> = Api::all(env.client.clone());
    namespaces
        .delete(&env.namespace, &DeleteParams::default())
        .await
        .unwrap();
    operator.wait().gone(&namespaces, &env.namespace).await;
    assert!(env.world.things().is_empty(), "{:?}", env.world.things());
}

/// Both writes are guarded: by what was read, so that no other entry is overwritten, and by the uid.
#[tokio::test]
async fn a_race_for_the_finalizers_is_lost_and_not_won_by_force() {
    let env = TestEnv::new("finalizer").await;
    let api: Api<Widget> = env.api();
    let read = env.widget("one", sized(1)).await;
    let theirs = |entries: &[&str]| json!({ "metadata": { "finalizers": entries } });
    env.merge::<Widget>("one", theirs(&["example.com/theirs"])).await;
    let lenient = env.api::<Lenient<Widget>>();
    let lost = finalizer::add(&lenient, &read, FINALIZER, "toy")
        .await
        .unwrap_err();
    assert_eq!(
        (lost.class, lost.reason),
        (Class::Transient, "Conflict"),
        "{lost:?}"
    );

    let read = api.get("one").await.unwrap();
    let added = finalizer::add(&lenient, &read, FINALIZER, "toy").await.unwrap();
    let added = added.into_whole().unwrap();
    assert_eq!(finalizers(&added), ["example.com/theirs", FINALIZER]);
    // Our entry is at another position in the list when it is removed.
    env.merge::<Widget>("one", theirs(&[FINALIZER, "example.com/other"]))
        .await;
    finalizer::remove(&lenient, &added, FINALIZER, "toy")
        .await
        .unwrap();
    assert_eq!(finalizers(&api.get("one").await.unwrap()), ["example.com/other"]);

    env.delete::<Widget>("one").await;
    let late = finalizer::add(&lenient, &api.get("one").await.unwrap(), FINALIZER, "toy")
        .await
        .unwrap_err();
    assert_eq!(
        (late.class, late.reason),
        (Class::Transient, "Conflict"),
        "{late:?}"
    );

    // Another object with the same name is not ours to change.
    env.merge::<Widget>("one", theirs(&[])).await;
    env.widget("one", sized(1)).await;
    env.merge::<Widget>("one", theirs(&[FINALIZER])).await;
    finalizer::remove(&lenient, &added, FINALIZER, "toy")
        .await
        .unwrap();
    assert_eq!(finalizers(&api.get("one").await.unwrap()), [FINALIZER]);
}
