//! kube-rs on the sandbox, in process and with a paused clock.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::crds::define;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use stanchion_sandbox::{Sandbox, User};

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_listed_and_deleted() {
    let sandbox = Sandbox::builder().seed(1).start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let made = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    assert!(made.metadata.uid.is_some());
    let conflict = api
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap_err();
    assert!(matches!(conflict, kube::Error::Api(status) if status.is_already_exists()));
    assert_eq!(
        api.list(&ListParams::default().labels("none"))
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_rolls_while_the_clock_is_stopped() {
    let sandbox = Sandbox::builder()
        .workloads(Some(Duration::from_secs(30)))
        .start()
        .unwrap();
    let api: Api<Deployment> = Api::default_namespaced(sandbox.client());
    let deployment = json!({"metadata": {"name": "a"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    api.create(
        &PostParams::default(),
        &serde_json::from_value(deployment).unwrap(),
    )
    .await
    .unwrap();
    let before = tokio::time::Instant::now();
    let done = kube::runtime::wait::await_condition(
        api.clone(),
        "a",
        kube::runtime::wait::conditions::is_deployment_completed(),
    );
    tokio::time::timeout(Duration::from_mins(5), done)
        .await
        .unwrap()
        .unwrap();
    assert!(
        before.elapsed() >= Duration::from_secs(29),
        "pods take their time: {:?}",
        before.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_roll_that_never_ends_is_reported() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<Deployment> = Api::default_namespaced(sandbox.client());
    let deployment = json!({"metadata": {"name": "a"}, "spec": {"progressDeadlineSeconds": 60, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "hang"}]}}}});
    api.create(
        &PostParams::default(),
        &serde_json::from_value(deployment).unwrap(),
    )
    .await
    .unwrap();
    let late = kube::runtime::wait::await_condition(api, "a", |object: Option<&Deployment>| {
        let conditions = object
            .and_then(|d| d.status.as_ref())
            .and_then(|s| s.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|c| c.type_ == "Progressing" && c.reason.as_deref() == Some("ProgressDeadlineExceeded"))
    });
    tokio::time::timeout(Duration::from_mins(10), late)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_deliver_everything() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<Secret> = Api::default_namespaced(sandbox.client());
    for number in 0..5 {
        let secret = serde_json::from_value(json!({"metadata": {"name": format!("s-{number}")}})).unwrap();
        api.create(&PostParams::default(), &secret).await.unwrap();
    }
    let config = watcher::Config::default().streaming_lists();
    let events = watcher(api, config).take_while(|event| {
        let done = matches!(event, Ok(watcher::Event::InitDone));
        async move { !done }
    });
    let events: Vec<_> = events.try_collect().await.unwrap();
    let found = events
        .iter()
        .filter(|event| matches!(event, watcher::Event::InitApply(_)))
        .count();
    assert_eq!(found, 5);
}

#[tokio::test(start_paused = true)]
async fn two_runs_with_one_seed_are_the_same() {
    let run = async || {
        let sandbox = Sandbox::builder().seed(42).start().unwrap();
        let api: Api<Pod> = Api::default_namespaced(sandbox.client());
        let pod = json!({"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let made = api
            .create(&PostParams::default(), &serde_json::from_value(pod).unwrap())
            .await
            .unwrap();
        (made.metadata.name, made.metadata.uid)
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test(start_paused = true)]
async fn requests_are_audited_and_roles_enforced() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client_as(User::new("eve", &[])));
    let error = api.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.is_forbidden()));
    let lines = sandbox.audit();
    let line = lines
        .iter()
        .find(|line| line["user"]["username"] == "eve")
        .unwrap();
    assert_eq!(line["verb"], "list");
    assert_eq!(line["responseStatus"]["code"], 403);
    assert_eq!(line["objectRef"]["resource"], "configmaps");
}

#[tokio::test]
async fn the_state_is_kept_between_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.json");
    let crd: Value = serde_json::from_str(include_str!("crd.json")).unwrap();
    {
        let sandbox = Sandbox::builder().state(&file).start().unwrap();
        let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
        api.create(&PostParams::default(), &config_map("kept", "1"))
            .await
            .unwrap();
        define(&sandbox.client(), crd).await;
    }
    let sandbox = Sandbox::builder().state(&file).start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let kept = api.get("kept").await.unwrap();
    assert_eq!(
        kept.data,
        Some(BTreeMap::from([("k".to_owned(), "1".to_owned())]))
    );
    let gadgets = http::Request::get("/apis/example.com/v1/gadgets")
        .body(Vec::new())
        .unwrap();
    let list: Value = sandbox.client().request(gadgets).await.unwrap();
    assert_eq!(list["kind"], "GadgetList");
}
