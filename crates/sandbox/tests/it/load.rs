//! Many watchers, many objects, many writes: nothing is missed and nothing is reordered.

use std::collections::HashMap;
use std::pin::pin;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::json;
use stanchion_sandbox::Sandbox;

const WATCHERS: usize = 100;
const OBJECTS: usize = 10_000;
const WRITES: usize = 2_000;

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
