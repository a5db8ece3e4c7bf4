//! Many watchers, many objects, many writes: nothing is missed and nothing is reordered.

use std::collections::HashMap;
use std::pin::pin;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::json;
use stanchion_sandbox::Sandbox;

const WATCHERS: usize = 100;
/// Unoptimised code is slow; `make bench-sandbox` has the full size.
const OBJECTS: usize = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
const WRITES: usize = if cfg!(debug_assertions) { 1_000 } else { 10_000 };

/// Objects are written through one connection after the other, so the order is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_sees_every_event_once_and_in_order() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    for number in 0..OBJECTS {
        let object = json!({"metadata": {"name": format!("o-{number}")}, "data": {"n": "0"}});
        api.create(
            &kube::api::PostParams::default(),
            &serde_json::from_value(object).unwrap(),
        )
        .await
        .unwrap();
    }
    let start = api
        .list_metadata(&kube::api::ListParams::default().limit(1))
        .await
        .unwrap();
    let start = start.metadata.resource_version.unwrap();

    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let (api, start) = (api.clone(), start.clone());
            tokio::spawn(async move {
                let mut events = pin!(
                    api.watch(&WatchParams::default().timeout(290), &start)
                        .await
                        .unwrap()
                );
                let mut last: HashMap<String, usize> = HashMap::new();
                let (mut version, mut seen) = (0_u64, 0);
                while seen < WRITES {
                    let Some(WatchEvent::Modified(object)) = events.try_next().await.unwrap() else {
                        continue;
                    };
                    let now = object.metadata.resource_version.unwrap().parse().unwrap();
                    assert!(version < now, "revisions only grow");
                    version = now;
                    let value: usize = object.data.unwrap()["n"].parse().unwrap();
                    let before = last
                        .insert(object.metadata.name.unwrap(), value)
                        .unwrap_or_default();
                    assert_eq!(value, before + 1, "no write of an object is missed or reordered");
                    seen += 1;
                }
            })
        })
        .collect();

    let begin = std::time::Instant::now();
    for write in 0..WRITES {
        let (name, value) = (format!("o-{}", write % 500), write / 500 + 1);
        let patch = kube::api::Patch::Merge(json!({"data": {"n": value.to_string()}}));
        api.patch(&name, &kube::api::PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    let took = begin.elapsed();
    for watcher in watchers {
        watcher.await.unwrap();
    }
    let rate = WRITES as u128 * 1_000_000 / took.as_micros().max(1);
    eprintln!("{rate} writes a second, {WATCHERS} watchers, {OBJECTS} objects");
}

/// Somebody writes the same object without a pause: a patch, which starts again when it was overtaken, ends all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_writer_does_not_starve_another() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let object = serde_json::from_value(json!({"metadata": {"name": "busy"}})).unwrap();
    api.create(&kube::api::PostParams::default(), &object)
        .await
        .unwrap();
    let storm = tokio::spawn({
        let api = api.clone();
        async move {
            for number in 0_u64.. {
                let patch = kube::api::Patch::Merge(json!({"data": {"storm": number.to_string()}}));
                let written = api
                    .patch("busy", &kube::api::PatchParams::default(), &patch)
                    .await;
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
        let (manager, patch) = (
            kube::api::PatchParams::apply("slow"),
            kube::api::Patch::Apply(patch),
        );
        let applied = api.patch("busy", &manager, &patch);
        let applied = tokio::time::timeout(std::time::Duration::from_mins(1), applied).await;
        assert_eq!(applied.unwrap().unwrap().data.unwrap()["k7"], number.to_string());
    }
    storm.abort();
}
