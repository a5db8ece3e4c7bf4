//! Finalizers and deletion on a real API server.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stanchion_kernel::lenient::Lenient;
use stanchion_kernel::{Class, finalizer};

use crate::toy::{Bed, FINALIZER, Widget, WidgetSpec};

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
    let bed = Bed::new("finalizer").await;
    let mut widget = Widget::new("one", sized(1));
    widget.metadata.finalizers = Some(vec!["example.com/first".into()]);
    let widgets: Api<Widget> = bed.api();
    widgets.create(&PostParams::default(), &widget).await.unwrap();
    let operator = bed.operator().await;
    let widget = bed.settled(&operator, "one").await;
    assert_eq!(finalizers(&widget), ["example.com/first", FINALIZER]);

    let more = json!(["example.com/first", FINALIZER, "example.com/last"]);
    bed.merge::<Widget>("one", json!({ "metadata": { "finalizers": more } }))
        .await;
    bed.delete::<Widget>("one").await;
    let is_released = |widget: &Widget| !finalizers(widget).contains(&FINALIZER.to_owned());
    let widget = bed.until(&operator, "one", is_released).await;
    assert_eq!(finalizers(&widget), ["example.com/first", "example.com/last"]);
    assert_eq!(bed.world.thing("one"), None);

    // Whatever happens to it now, the operator ignores it.
    let (changes, writes) = (bed.world.changes(), operator.writes().len());
    bed.respec("one", json!({ "size": 2 })).await;
    bed.delete::<ConfigMap>("one").await;
    bed.flush(&operator).await;
    drop(operator);
    let operator = bed.operator().await;
    bed.flush(&operator).await;
    assert!(writes > 0);
    assert_eq!(operator.writes(), [""; 0]);
    let of_the_fences = 2 * 2;
    assert!(bed.world.changes() <= changes + of_the_fences);
    assert_eq!(bed.world.thing("one"), None);
    let widget = widgets.get("one").await.unwrap();
    assert_eq!(finalizers(&widget), ["example.com/first", "example.com/last"]);
    bed.merge::<Widget>("one", json!({ "metadata": { "finalizers": null } }))
        .await;
    operator.wait().gone(&widgets, "one").await;
}

/// The finalizer is added before any external change: an object that is deleted half-way is cleaned up.
#[tokio::test]
async fn the_finalizer_comes_before_any_outside_work() {
    let bed = Bed::new("finalizer").await;
    bed.world.hold("one");
    let operator = bed.operator().await;
    bed.widget("one", sized(1)).await;
    let widget = bed
        .until(&operator, "one", |widget| !finalizers(widget).is_empty())
        .await;
    assert_eq!(finalizers(&widget), [FINALIZER]);
    assert_eq!(bed.world.thing("one"), None);
    bed.delete::<Widget>("one").await;
    bed.world.release("one");
    operator.wait().gone(&bed.api::<Widget>(), "one").await;
    assert_eq!(bed.world.thing("one"), None);
}

#[tokio::test]
async fn an_object_is_deletable_whatever_it_waits_for() {
    let bed = Bed::new("finalizer").await;
    bed.secret("mine", "one").await;
    let with_secret = WidgetSpec {
        secret_ref: Some("mine".into()),
        ..sized(1)
    };
    bed.widget("secretless", with_secret).await;
    bed.widget("invalid", sized(1)).await;
    let operator = bed.operator().await;
    bed.settled(&operator, "secretless").await;
    bed.settled(&operator, "invalid").await;
    bed.delete::<Secret>("mine").await;
    bed.until(&operator, "secretless", |widget| {
        widget.fails_with("SecretMissing")
    })
    .await;
    bed.respec("invalid", json!({ "size": 0 })).await;
    bed.until(&operator, "invalid", |widget| widget.fails_with("InvalidSize"))
        .await;
    let widgets: Api<Widget> = bed.api();
    for name in ["secretless", "invalid"] {
        bed.delete::<Widget>(name).await;
        operator.wait().gone(&widgets, name).await;
        assert_eq!(bed.world.thing(name), None);
    }
}

#[tokio::test]
async fn a_cleanup_that_fails_keeps_the_object_and_says_why() {
    let bed = Bed::new("finalizer").await;
    bed.widget("one", sized(1)).await;
    let operator = bed.operator().await;
    bed.settled(&operator, "one").await;
    bed.world.fails("one", Some(Class::Transient));
    bed.delete::<Widget>("one").await;
    let widget = bed
        .until(&operator, "one", |widget| widget.fails_with("Outage"))
        .await;
    assert_eq!(finalizers(&widget), [FINALIZER]);
    bed.world.fails("one", None);
    operator.wait().gone(&bed.api::<Widget>(), "one").await;
    assert_eq!(bed.world.thing("one"), None);
}

#[tokio::test]
async fn a_namespace_with_objects_in_it_can_be_deleted() {
    let bed = Bed::new("finalizer").await;
    bed.secret("mine", "one").await;
    for number in 0..5 {
        let spec = WidgetSpec {
            secret_ref: Some("mine".into()),
            ..sized(1)
        };
        bed.widget(&format!("w{number}"), spec).await;
    }
    let operator = bed.operator().await;
    for number in 0..5 {
        bed.until(&operator, &format!("w{number}"), Widget::is_ready)
            .await;
    }
    let namespaces: Api<Namespace> = Api::all(bed.client.clone());
    namespaces
        .delete(&bed.namespace, &DeleteParams::default())
        .await
        .unwrap();
    operator.wait().gone(&namespaces, &bed.namespace).await;
    assert!(bed.world.things().is_empty(), "{:?}", bed.world.things());
}

/// Both writes are guarded: by what was read, so that no other entry is overwritten, and by the uid.
#[tokio::test]
async fn a_race_for_the_finalizers_is_lost_and_not_won_by_force() {
    let bed = Bed::new("finalizer").await;
    let api: Api<Widget> = bed.api();
    let read = bed.widget("one", sized(1)).await;
    let theirs = |entries: &[&str]| json!({ "metadata": { "finalizers": entries } });
    bed.merge::<Widget>("one", theirs(&["example.com/theirs"])).await;
    let lenient = bed.api::<Lenient<Widget>>();
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
    bed.merge::<Widget>("one", theirs(&[FINALIZER, "example.com/other"]))
        .await;
    finalizer::remove(&lenient, &added, FINALIZER, "toy")
        .await
        .unwrap();
    assert_eq!(finalizers(&api.get("one").await.unwrap()), ["example.com/other"]);

    bed.delete::<Widget>("one").await;
    let late = finalizer::add(&lenient, &api.get("one").await.unwrap(), FINALIZER, "toy")
        .await
        .unwrap_err();
    assert_eq!(
        (late.class, late.reason),
        (Class::Transient, "Conflict"),
        "{late:?}"
    );

    // Another object with the same name is not ours to change.
    bed.merge::<Widget>("one", theirs(&[])).await;
    bed.widget("one", sized(1)).await;
    bed.merge::<Widget>("one", theirs(&[FINALIZER])).await;
    finalizer::remove(&lenient, &added, FINALIZER, "toy")
        .await
        .unwrap();
    assert_eq!(finalizers(&api.get("one").await.unwrap()), [FINALIZER]);
}
