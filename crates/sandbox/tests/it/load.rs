//! Many watchers, many objects, many writes: nothing is missed and nothing is reordered.

use std::collections::HashMap;
use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use stanchion_sandbox::Sandbox;
use tokio::task::JoinSet;

const WATCHERS: usize = 100;
const OBJECTS: usize = 10_000;
/// Each with objects of its own, so that the order of an object's values is known.
const WRITERS: usize = 8;
/// Objects that a writer writes in turn, and how often it does.
const IN_TURN: usize = 25;
const TURNS: usize = 5;
const WRITES: usize = WRITERS * IN_TURN * TURNS;

fn name(number: usize) -> String {
    format!("o-{number}")
}

/// As fast as they go; `make bench-sandbox` measures how fast that is, over TLS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_sees_every_event_once_and_in_order() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let created = stream::iter(0..OBJECTS).map(async |number| {
        let object = json!({"metadata": {"name": name(number)}, "data": {"n": "0"}});
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    });
    created.buffer_unordered(WRITERS).collect::<()>().await;
    let start = api.list_metadata(&ListParams::default().limit(1)).await.unwrap();
    let start = start.metadata.resource_version.unwrap();

    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        watchers.spawn(watch(api.clone(), start.clone()));
    }
    let writers = stream::iter(0..WRITERS).map(async |writer| {
        for turn in 1..=TURNS {
            for object in 0..IN_TURN {
                let patch = Patch::Merge(json!({"data": {"n": turn.to_string()}}));
                let name = name(object * WRITERS + writer);
                api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
            }
        }
    });
    writers.buffer_unordered(WRITERS).collect::<()>().await;
    while let Some(watcher) = watchers.join_next().await {
        watcher.unwrap();
    }
}

/// Follows all writes; fails when one is missed, doubled or out of order.
async fn watch(api: Api<ConfigMap>, start: String) {
    let parameters = WatchParams::default().timeout(290);
    let mut events = pin!(api.watch(&parameters, &start).await.unwrap());
    let mut last: HashMap<String, usize> = HashMap::new();
    let mut version = 0_u64;
    for _ in 0..WRITES {
        let event = events.try_next().await.unwrap();
        let Some(WatchEvent::Modified(object)) = event else {
            panic!("only changes were to come: {event:?}");
        };
        let now = object.metadata.resource_version.unwrap().parse().unwrap();
        assert!(version < now, "revisions only grow");
        version = now;
        let value: usize = object.data.unwrap()["n"].parse().unwrap();
        let before = last
            .insert(object.metadata.name.unwrap(), value)
            .unwrap_or_default();
        assert_eq!(value, before + 1, "no write of an object is missed or reordered");
    }
}

/// Somebody writes the same object without a pause: a patch, which starts again when it was overtaken, ends all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_writer_does_not_starve_another() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let object = serde_json::from_value(json!({"metadata": {"name": "busy"}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    let storm = tokio::spawn({
        let api = api.clone();
        async move {
            for number in 0_u64.. {
                let patch = Patch::Merge(json!({"data": {"storm": number.to_string()}}));
                let written = api.patch("busy", &PatchParams::default(), &patch).await;
                written.unwrap();
            }
        }
    });
    for number in 0..50 {
        let many: serde_json::Map<String, serde_json::Value> = (0..50)
            .map(|key| (format!("k{key}"), json!(number.to_string())))
            .collect();
        let patch =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "busy"}, "data": many});
        let (manager, patch) = (PatchParams::apply("slow"), Patch::Apply(patch));
        let applied = api.patch("busy", &manager, &patch);
        let applied = tokio::time::timeout(std::time::Duration::from_mins(1), applied).await;
        assert_eq!(applied.unwrap().unwrap().data.unwrap()["k7"], number.to_string());
    }
    storm.abort();
}
