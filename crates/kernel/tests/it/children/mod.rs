//! The cache of children: created with one call each, never read, repaired when they are changed, and reported to their
//! owner when something relevant happens to them.

pub(crate) mod controller;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stanchion_kernel::apply::Takeover;

use self::controller::ManyChildren;
use crate::test_env::{Running, TestEnv, Widget, WidgetSpec, settings};

async fn start(env: &TestEnv, takeover: Takeover) -> Running {
    env.start(env.cluster.config().await, settings(), ManyChildren(takeover))
}

fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

/// A widget with this many `ConfigMap`s, and an operator that has nothing left to do about it.
async fn settled(env: &TestEnv, size: u32) -> Running {
    env.widget("one", sized(size)).await;
    let operator = start(env, Takeover::Refuse).await;
    env.until(&operator, "one", Widget::is_ready).await;
    operator.idle().await;
    operator
}

/// Calls of the operator for anything but its own objects: method and name.
fn calls_for_children(operator: &Running) -> Vec<String> {
    let calls = operator.faults.calls();
    let children = calls
        .iter()
        .filter(|call| matches!(call.target.resource.as_str(), "configmaps" | "deployments"))
        .filter(|call| !call.target.name.is_empty());
    children
        .map(|call| format!("{} {}", call.method, call.target.name))
        .collect()
}

#[tokio::test]
async fn a_child_is_made_with_one_call_and_never_read() {
    let env = TestEnv::new("children").await;
    let operator = settled(&env, 3).await;
    let mut calls = calls_for_children(&operator);
    calls.sort();
    assert_eq!(calls, ["PATCH one", "PATCH one-0", "PATCH one-1", "PATCH one-2"]);
}

#[tokio::test]
async fn a_restart_reads_and_writes_nothing() {
    let env = TestEnv::new("children").await;
    drop(settled(&env, 3).await);
    let operator = start(&env, Takeover::Refuse).await;
    operator.readiness.wait().await;
    // It has had its first pass when it has reacted to a later change.
    env.respec("one", json!({ "size": 4 })).await;
    operator
        .wait()
        .until(&env.api::<ConfigMap>(), "one-3", |_| true)
        .await;
    operator.idle().await;
    assert_eq!(calls_for_children(&operator), ["PATCH one-3"]);
}

/// Each is a way to change a field of ours.
#[tokio::test]
async fn every_change_of_a_child_is_repaired() {
    let env = TestEnv::new("children").await;
    let operator = settled(&env, 1).await;
    let maps: Api<ConfigMap> = env.api();
    let is_repaired = |map: &ConfigMap| {
        let of = map.data.as_ref().and_then(|data| data.get("of"));
        let ours = map.metadata.labels.as_ref();
        of.is_some_and(|of| of == "one")
            && ours.is_some_and(|labels| labels.contains_key("app.kubernetes.io/managed-by"))
    };
    let harms = [
        json!({ "data": { "of": "another" } }),
        json!({ "data": { "of": null } }),
        json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": null } } }),
    ];
    for harm in harms {
        env.merge::<ConfigMap>("one-0", harm).await;
        operator.wait().until(&maps, "one-0", is_repaired).await;
    }
    // It can also be deleted when it does not belong to its owner any more.
    for is_orphan in [false, true] {
        if is_orphan {
            env.merge::<ConfigMap>("one-0", json!({ "metadata": { "ownerReferences": null } }))
                .await;
            env.until(&operator, "one", |widget| widget.fails_with("NotOurs"))
                .await;
        }
        let before = maps.get("one-0").await.unwrap();
        env.delete::<ConfigMap>("one-0").await;
        let is_new = |map: &ConfigMap| map.metadata.uid != before.metadata.uid && is_repaired(map);
        operator.wait().until(&maps, "one-0", is_new).await;
    }
    env.until(&operator, "one", Widget::is_ready).await;
}

#[tokio::test]
async fn changes_during_downtime_are_repaired() {
    let env = TestEnv::new("children").await;
    drop(settled(&env, 3).await);
    env.merge::<ConfigMap>("one-0", json!({ "data": { "of": null } }))
        .await;
    env.delete::<ConfigMap>("one-1").await;
    let applied = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "of": "somebody" } });
    let params = PatchParams::apply("somebody").force();
    let maps: Api<ConfigMap> = env.api();
    maps.patch("one-2", &params, &Patch::Apply(applied))
        .await
        .unwrap();
    let operator = start(&env, Takeover::Refuse).await;
    for name in ["one-0", "one-1", "one-2"] {
        let is_repaired = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["of"] == "one");
        operator.wait().until(&maps, name, is_repaired).await;
    }
}

#[tokio::test]
async fn what_others_add_is_left_alone_and_wakes_nobody() {
    let env = TestEnv::new("children").await;
    let operator = settled(&env, 1).await;
    let before = operator.faults.calls().len();
    let theirs = json!({ "metadata": { "annotations": { "theirs": "kept" } }, "data": { "theirs": "kept" } });
    env.merge::<ConfigMap>("one-0", theirs).await;
    env.merge::<Deployment>("one", json!({ "metadata": { "labels": { "theirs": "kept" } } }))
        .await;
    // The watches are ordered: an operator that has repaired a later change has received these.
    env.merge::<ConfigMap>("one-0", json!({ "data": { "of": "another" } }))
        .await;
    let is_repaired = |map: &ConfigMap| map.data.as_ref().unwrap()["of"] == "one";
    let maps: Api<ConfigMap> = env.api();
    let repaired = operator.wait().until(&maps, "one-0", is_repaired).await;
    assert_eq!(repaired.data.unwrap()["theirs"], "kept");
    operator.idle().await;
    let calls = operator.faults.calls().split_off(before);
    let changes: Vec<_> = calls
        .iter()
        .filter(|call| call.target.subresource.is_empty())
        .collect();
    assert!(
        changes.iter().all(|call| call.target.name == "one-0"),
        "only the change of our field has cost anything: {changes:?}"
    );
}

#[tokio::test]
async fn a_child_that_is_no_longer_intended_is_deleted() {
    let env = TestEnv::new("children").await;
    let operator = settled(&env, 3).await;
    let maps: Api<ConfigMap> = env.api();
    env.respec("one", json!({ "size": 1 })).await;
    for name in ["one-1", "one-2"] {
        operator.wait().gone(&maps, name).await;
    }
    operator.idle().await;
    maps.get("one-0").await.unwrap();
    let calls = calls_for_children(&operator);
    assert_eq!(
        calls.iter().filter(|call| call.starts_with("DELETE")).count(),
        2,
        "{calls:?}"
    );
}

/// Another owner's `ConfigMap` with the name of a child.
async fn foreign(env: &TestEnv) -> ConfigMap {
    let map = json!({ "metadata": { "name": "one-0" }, "data": { "theirs": "precious" } });
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    env.api().create(&PostParams::default(), &map).await.unwrap()
}

#[tokio::test]
async fn an_existing_child_is_not_changed() {
    let env = TestEnv::new("children").await;
    let before = foreign(&env).await;
    env.widget("one", sized(1)).await;
    let operator = start(&env, Takeover::Refuse).await;
    env.until(&operator, "one", |widget| widget.fails_with("NotOurs"))
        .await;
    let after = env.api::<ConfigMap>().get("one-0").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
}

#[tokio::test]
async fn an_existing_child_is_adopted_if_requested() {
    let env = TestEnv::new("children").await;
    let before = foreign(&env).await;
    env.widget("one", sized(1)).await;
    let operator = start(&env, Takeover::Adopt).await;
    env.until(&operator, "one", Widget::is_ready).await;
    let after = env.api::<ConfigMap>().get("one-0").await.unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    let data: Value = json!(after.data);
    assert_eq!(data, json!({ "of": "one", "theirs": "precious" }));
}
