//! Children on a real API server: what is repaired, what is refused, and what stays unchanged.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::test_env::{TestEnv, WidgetSpec, writes_of};

fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

#[tokio::test]
async fn what_others_do_to_our_fields_is_repaired_and_theirs_are_kept() {
    let env = TestEnv::new("apply").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    let theirs = json!({
        "metadata": { "labels": { "theirs": "kept", "app.kubernetes.io/managed-by": "somebody" } },
        "data": { "size": "1000", "theirs": "kept" },
    });
    env.merge::<ConfigMap>("one", theirs).await;
    let maps: Api<ConfigMap> = env.api();
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
    let env = TestEnv::new("apply").await;
    let frozen = WidgetSpec {
        frozen: true,
        ..sized(1)
    };
    env.widget("one", frozen).await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    env.respec("one", json!({ "size": 2 })).await;
    let widget = env
        .until(&operator, "one", |widget| widget.fails_with("ImmutableField"))
        .await;
    let message = &widget.condition("Ready").unwrap().message;
    assert!(
        message.starts_with("ConfigMap one: data cannot be changed on an existing object"),
        "{message}"
    );
    assert_eq!(widget.condition("Stalled").unwrap().status, "True");
    // The person follows the message.
    env.delete::<ConfigMap>("one").await;
    env.settled(&operator, "one").await;
}

#[tokio::test]
async fn a_child_that_was_there_and_is_not_ours_is_refused() {
    let env = TestEnv::new("apply").await;
    let maps: Api<ConfigMap> = env.api();
    let foreign = json!({ "metadata": { "name": "one" }, "data": { "precious": "yes" } });
    let foreign: ConfigMap = serde_json::from_value(foreign).unwrap();
    let foreign = maps.create(&PostParams::default(), &foreign).await.unwrap();
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    let widget = env
        .until(&operator, "one", |widget| widget.fails_with("NotOurs"))
        .await;
    assert_eq!(
        widget.condition("Ready").unwrap().message,
        "ConfigMap one exists and does not belong to Widget one; delete it or choose another name, or let it be \
         adopted: kubectl annotate ConfigMap one stanchion.dev/adopt-by=one"
    );
    env.flush(&operator).await;
    assert_eq!(maps.get("one").await.unwrap(), foreign);
}

/// It appears after the pass has found no object, and before the pass writes.
#[tokio::test]
async fn a_foreign_child_that_appears_in_the_middle_of_a_pass_is_refused_too() {
    let env = TestEnv::new("apply").await;
    let operator = env.operator().await;
    env.world.hold("one");
    env.widget("one", sized(1)).await;
    let has_looked = async || {
        let calls = operator.faults.calls();
        calls
            .iter()
            .any(|call| call.target.name == "one" && call.target.resource == "configmaps")
            && env.world.running("one") == 1
    };
    operator
        .wait()
        .eventually("the pass to have looked", has_looked)
        .await;
    let maps: Api<ConfigMap> = env.api();
    let foreign = json!({ "metadata": { "name": "one" }, "data": { "size": "precious" } });
    let foreign: ConfigMap = serde_json::from_value(foreign).unwrap();
    let foreign = maps.create(&PostParams::default(), &foreign).await.unwrap();
    env.world.release("one");
    env.until(&operator, "one", |widget| widget.fails_with("NotOurs"))
        .await;
    assert_eq!(maps.get("one").await.unwrap(), foreign);
}

/// The intent's hash is on the child, so a new operator finds that there is nothing to do.
#[tokio::test]
async fn a_restart_with_everything_converged_writes_nothing() {
    let env = TestEnv::new("apply").await;
    env.password("mine", "one").await;
    for number in 0..5 {
        let spec = WidgetSpec {
            secret_ref: (number % 2 == 0).then(|| "mine".into()),
            ..sized(number + 1)
        };
        env.widget(&format!("w{number}"), spec).await;
    }
    env.widget("invalid", sized(0)).await;
    let first = env.operator().await;
    for number in 0..5 {
        env.settled(&first, &format!("w{number}")).await;
    }
    env.until(&first, "invalid", |widget| widget.fails_with("InvalidSize"))
        .await;
    env.flush(&first).await;
    drop(first);

    let (changes, passes) = (env.world.changes(), env.world.passes("w0"));
    let second = env.operator().await;
    let has_looked = async || (0..5).all(|number| env.world.passes(&format!("w{number}")) > passes.min(1));
    second
        .wait()
        .eventually("the second operator to look", has_looked)
        .await;
    second
        .wait()
        .eventually("it to be ready", async || second.readiness.missing().is_empty())
        .await;
    env.flush(&second).await;
    assert_eq!(writes_of(&second), [""; 0], "to Kubernetes");
    let of_the_fence = env.world.changes() - changes;
    assert_eq!(
        of_the_fence, 2,
        "and to the world: only the fence's size and password"
    );
}
