//! Children on a real API server: what is repaired, what is refused, and what stays unchanged.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::toy::{Bed, WidgetSpec};

fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

#[tokio::test]
async fn what_others_do_to_our_fields_is_repaired_and_theirs_are_kept() {
    let bed = Bed::new("apply").await;
    bed.widget("one", sized(1)).await;
    let operator = bed.operator().await;
    bed.settled(&operator, "one").await;
    let theirs = json!({
        "metadata": { "labels": { "theirs": "kept", "app.kubernetes.io/managed-by": "somebody" } },
        "data": { "size": "1000", "theirs": "kept" },
    });
    bed.merge::<ConfigMap>("one", theirs).await;
    let maps: Api<ConfigMap> = bed.api();
    let is_repaired = |map: &ConfigMap| {
        let (data, labels) = (map.data.clone().unwrap(), map.metadata.labels.clone().unwrap());
        data["size"] == "1" && labels["app.kubernetes.io/managed-by"] == "stanchion"
    };
    let repaired = operator.wait().until(&maps, "one", is_repaired).await;
    assert_eq!(repaired.data.unwrap()["theirs"], "kept");
    assert_eq!(repaired.metadata.labels.unwrap()["theirs"], "kept");
}

#[tokio::test]
async fn an_immutable_field_is_a_persons_problem_that_names_the_field() {
    let bed = Bed::new("apply").await;
    let frozen = WidgetSpec {
        frozen: true,
        ..sized(1)
    };
    bed.widget("one", frozen).await;
    let operator = bed.operator().await;
    bed.settled(&operator, "one").await;
    bed.respec("one", json!({ "size": 2 })).await;
    let widget = bed
        .until(&operator, "one", |widget| widget.fails_with("ImmutableField"))
        .await;
    let message = &widget.condition("Ready").unwrap().message;
    assert!(
        message.starts_with("ConfigMap one: data cannot be changed on an existing object"),
        "{message}"
    );
    assert_eq!(widget.condition("Stalled").unwrap().status, "True");
    // The person follows the message.
    bed.delete::<ConfigMap>("one").await;
    bed.settled(&operator, "one").await;
}

#[tokio::test]
async fn a_child_that_was_there_and_is_not_ours_is_refused() {
    let bed = Bed::new("apply").await;
    let maps: Api<ConfigMap> = bed.api();
    let foreign = json!({ "metadata": { "name": "one" }, "data": { "precious": "yes" } });
    let foreign: ConfigMap = serde_json::from_value(foreign).unwrap();
    let foreign = maps.create(&PostParams::default(), &foreign).await.unwrap();
    bed.widget("one", sized(1)).await;
    let operator = bed.operator().await;
    let widget = bed
        .until(&operator, "one", |widget| widget.fails_with("NotOurs"))
        .await;
    assert_eq!(
        widget.condition("Ready").unwrap().message,
        "ConfigMap one exists and does not belong to Widget one; delete it or choose another name, or let it be \
         adopted: kubectl annotate ConfigMap one stanchion.dev/adopt-by=one"
    );
    bed.flush(&operator).await;
    assert_eq!(maps.get("one").await.unwrap(), foreign);
}

/// It appears after the pass has found no object, and before the pass writes.
#[tokio::test]
async fn a_foreign_child_that_appears_in_the_middle_of_a_pass_is_refused_too() {
    let bed = Bed::new("apply").await;
    let operator = bed.operator().await;
    bed.world.hold("one");
    bed.widget("one", sized(1)).await;
    let has_looked = async || {
        let calls = operator.faults.calls();
        calls
            .iter()
            .any(|call| call.target.name == "one" && call.target.resource == "configmaps")
            && bed.world.running("one") == 1
    };
    operator
        .wait()
        .eventually("the pass to have looked", has_looked)
        .await;
    let maps: Api<ConfigMap> = bed.api();
    let foreign = json!({ "metadata": { "name": "one" }, "data": { "size": "precious" } });
    let foreign: ConfigMap = serde_json::from_value(foreign).unwrap();
    let foreign = maps.create(&PostParams::default(), &foreign).await.unwrap();
    bed.world.release("one");
    bed.until(&operator, "one", |widget| widget.fails_with("NotOurs"))
        .await;
    assert_eq!(maps.get("one").await.unwrap(), foreign);
}

/// The intent's hash is on the child, so a new operator finds that there is nothing to do.
#[tokio::test]
async fn a_restart_with_everything_converged_writes_nothing() {
    let bed = Bed::new("apply").await;
    bed.secret("mine", "one").await;
    for number in 0..5 {
        let spec = WidgetSpec {
            secret_ref: (number % 2 == 0).then(|| "mine".into()),
            ..sized(number + 1)
        };
        bed.widget(&format!("w{number}"), spec).await;
    }
    bed.widget("invalid", sized(0)).await;
    let first = bed.operator().await;
    for number in 0..5 {
        bed.settled(&first, &format!("w{number}")).await;
    }
    bed.until(&first, "invalid", |widget| widget.fails_with("InvalidSize"))
        .await;
    bed.flush(&first).await;
    drop(first);

    let (changes, passes) = (bed.world.changes(), bed.world.passes("w0"));
    let second = bed.operator().await;
    let has_looked = async || (0..5).all(|number| bed.world.passes(&format!("w{number}")) > passes.min(1));
    second
        .wait()
        .eventually("the second operator to look", has_looked)
        .await;
    second
        .wait()
        .eventually("it to be ready", async || second.synced.missing().is_empty())
        .await;
    bed.flush(&second).await;
    assert_eq!(second.writes(), [""; 0], "to Kubernetes");
    let of_the_fence = bed.world.changes() - changes;
    assert_eq!(
        of_the_fence, 2,
        "and to the world: only the fence's size and password"
    );
}
