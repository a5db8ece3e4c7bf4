//! Many watchers, many objects, many writes: no event is missed or reordered.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, watcher};
use serde_json::json;
use stanchion_sandbox::{Sandbox, User};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const WATCHERS: usize = 100;
const OBJECTS: usize = 10_000;
/// Each has its own objects, so that the order of an object's values is known.
const WRITERS: usize = 8;
/// Number of objects of a writer, and of its writes.
const IN_TURN: usize = 25;
const TURNS: usize = 5;
const WRITES: usize = WRITERS * IN_TURN * TURNS;

fn name(number: usize) -> String {
    format!("o-{number}")
}

/// As fast as possible, over TLS; `make bench-sandbox` measures the speed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_sees_every_event_once_and_in_order() {
    let mut sandbox = Sandbox::builder().workloads(None).start().unwrap();
    sandbox.listen(0).await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let created = stream::iter(0..OBJECTS).map(async |number| {
        // Only objects that are written are watched: ten thousand objects for each of a hundred watchers would test the
        // parser.
        let watched = if number < WRITERS * IN_TURN { "yes" } else { "no" };
        let object =
            json!({"metadata": {"name": name(number), "labels": {"watched": watched}}, "data": {"n": "0"}});
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    });
    created.buffer_unordered(WRITERS).collect::<()>().await;

    let kubeconfig = sandbox.kubeconfig(User::admin()).unwrap();
    let ready = Arc::new(Barrier::new(WATCHERS + 1));
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        watchers.spawn(follow(client(&kubeconfig).await, ready.clone()));
    }
    ready.wait().await;
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

/// A client with its own connection.
async fn client(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Follows all writes as a controller does; fails when one is missed, duplicated or out of order.
async fn follow(client: kube::Client, ready: Arc<Barrier>) {
    let config = watcher::Config::default().labels("watched=yes");
    let mut events = pin!(watcher(Api::<ConfigMap>::default_namespaced(client), config));
    let mut last: HashMap<String, usize> = HashMap::new();
    let (mut version, mut seen) = (0_u64, 0);
    while seen < WRITES {
        let object = match events.try_next().await.unwrap().unwrap() {
            watcher::Event::Init => continue,
            watcher::Event::InitApply(object) => {
                last.insert(object.metadata.name.unwrap(), 0);
                continue;
            }
            watcher::Event::InitDone => {
                assert_eq!(last.len(), WRITERS * IN_TURN, "it begins with all objects");
                ready.wait().await;
                continue;
            }
            watcher::Event::Apply(object) => object,
            watcher::Event::Delete(object) => panic!("nothing was deleted: {object:?}"),
        };
        seen += 1;
        let now = object.metadata.resource_version.unwrap().parse().unwrap();
        assert!(version < now, "revisions only grow");
        version = now;
        let value: usize = object.data.unwrap()["n"].parse().unwrap();
        let before = last.insert(object.metadata.name.unwrap(), value).unwrap();
        assert_eq!(value, before + 1, "no write of an object is missed or reordered");
    }
}

/// Another writer changes the same object continuously: a patch, which retries on conflicts, still finishes.
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
