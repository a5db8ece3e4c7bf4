//! Many watchers over many objects, and writes at a steady rate: no event is missed, duplicated or reordered.

use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;

use crate::Arguments;
use crate::work::{api, name};

/// Writers, each with its own objects, so that the order of an object's values is known.
const WRITERS: u32 = 8;
/// Number of objects that a writer writes in turn.
const IN_TURN: u32 = 100;

/// Writes while all watch; returns the number of writes per second.
pub(crate) async fn follow(client: &Client, arguments: &Arguments) -> f64 {
    let api = api(client);
    let start = api
        .list_metadata(&ListParams::default().limit(1))
        .await
        .expect("a list");
    let start = start.metadata.resource_version.expect("a version");
    let mut watchers = JoinSet::new();
    for _ in 0..arguments.watchers {
        watchers.spawn(watch(api.clone(), start.clone(), arguments.writes));
    }
    let begin = Instant::now();
    let writers = stream::iter(0..WRITERS).map(async |writer| {
        for write in (writer..arguments.writes).step_by(WRITERS as usize) {
            let due = Duration::from_secs(1) * write / arguments.rate;
            tokio::time::sleep(due.saturating_sub(begin.elapsed())).await;
            let turn = write / WRITERS;
            let object = name(1 + turn % IN_TURN * WRITERS + writer);
            let patch = Patch::Merge(json!({"data": {"turn": (turn / IN_TURN).to_string()}}));
            api.patch(&object, &PatchParams::default(), &patch)
                .await
                .expect("written");
        }
    });
    writers.buffer_unordered(WRITERS as usize).collect::<()>().await;
    while let Some(watcher) = watchers.join_next().await {
        watcher.expect("a watcher saw everything in order");
    }
    f64::from(arguments.writes) / begin.elapsed().as_secs_f64()
}

async fn watch(api: Api<ConfigMap>, start: String, writes: u32) {
    let parameters = WatchParams::default().timeout(290);
    let mut events = pin!(api.watch(&parameters, &start).await.expect("a watch"));
    let mut next: HashMap<String, u32> = HashMap::new();
    let (mut version, mut seen) = (0_u64, 0);
    while seen < writes {
        let event = events.try_next().await.expect("no error").expect("no end");
        let WatchEvent::Modified(object) = event else {
            continue;
        };
        let now = object
            .metadata
            .resource_version
            .and_then(|version| version.parse().ok());
        let now = now.expect("versions are numbers");
        assert!(version < now, "versions only grow");
        version = now;
        let turn = object.data.and_then(|mut data| data.remove("turn")?.parse().ok());
        let expected = next.entry(object.metadata.name.expect("a name")).or_default();
        assert_eq!(
            turn,
            Some(*expected),
            "no write of an object is missed, doubled or reordered"
        );
        *expected += 1;
        seen += 1;
    }
}
