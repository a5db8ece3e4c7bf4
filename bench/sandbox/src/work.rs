//! Writes as fast as possible, and the delay of a watch.

use std::pin::pin;
use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Number of concurrent requests.
const AT_A_TIME: usize = 16;
const SAMPLES: u32 = 500;

pub(crate) fn api(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

pub(crate) fn name(number: u32) -> String {
    format!("object-{number}")
}

fn object(number: u32, value: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name(number), "labels": {"app": "bench", "part": (number % 7).to_string()}},
        "data": {"n": value.to_string(), "text": "some words that are stored in every object of this bench"},
    })
}

async fn rate<F: Future<Output = ()>>(count: u32, request: impl FnMut(u32) -> F) -> f64 {
    let begin = Instant::now();
    let requests = stream::iter(0..count).map(request);
    requests.buffer_unordered(AT_A_TIME).collect::<()>().await;
    f64::from(count) / begin.elapsed().as_secs_f64()
}

/// Creates this many objects; returns the number per second.
pub(crate) async fn creates(client: &Client, count: u32) -> f64 {
    let api = api(client);
    rate(count, async |number| {
        let object = serde_json::from_value(object(number, 0)).expect("a ConfigMap");
        api.create(&PostParams::default(), &object)
            .await
            .expect("created");
    })
    .await
}

/// Applies a change to this many objects; returns the number per second.
pub(crate) async fn applies(client: &Client, count: u32) -> f64 {
    let (api, manager) = (api(client), PatchParams::apply("bench").force());
    rate(count, async |number| {
        let patch = Patch::Apply(object(number, 1));
        api.patch(&name(number), &manager, &patch).await.expect("applied");
    })
    .await
}

/// The time from sending a write to its watch event, in milliseconds: p50 and p99.
pub(crate) async fn latency(client: &Client) -> (f64, f64) {
    let api = api(client);
    let last = api.get(&name(0)).await.expect("the first object");
    let version = last.metadata.resource_version.expect("a version");
    let only = WatchParams::default().fields(&format!("metadata.name={}", name(0)));
    let mut events = pin!(api.watch(&only, &version).await.expect("a watch"));
    let mut samples = Vec::new();
    for sample in 0..SAMPLES {
        let patch = Patch::Merge(json!({"data": {"sample": sample.to_string()}}));
        let begin = Instant::now();
        let heard = async {
            while !matches!(
                events.try_next().await.expect("events"),
                Some(WatchEvent::Modified(_))
            ) {}
            begin.elapsed()
        };
        let (name, parameters) = (name(0), PatchParams::default());
        let (written, elapsed) = tokio::join!(api.patch(&name, &parameters, &patch), heard);
        written.expect("written");
        samples.push(elapsed.as_secs_f64() * 1e3);
    }
    samples.sort_by(f64::total_cmp);
    let at = |part: usize| {
        samples
            .get(samples.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    (at(50), at(99))
}
