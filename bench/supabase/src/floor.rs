//! Measures the cluster's own time for the same children: no operator that waits for ready projects can be faster.

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stanchion_bench_env::{Programs, row};

use crate::setup::{BenchSetup, name};
use crate::{seconds, timeline};

/// How often the readiness is checked: seldom, because listing all objects is work for the measured server.
const GLANCE: Duration = Duration::from_secs(2);

/// Lets the operator create one project on a separate cluster, and stops it; then creates that project's Services and
/// Deployments repeatedly, under other names, and waits for their pods.
pub(crate) async fn measure(binary: &Path, projects: usize) {
    let setup = BenchSetup::new(1).await;
    let operator = setup.operator(binary);
    setup.create(1).await;
    setup.running(1).await;
    drop(operator);
    let pattern = [
        patterns(&setup.services).await,
        patterns(&setup.deployments).await,
    ]
    .concat();
    let children = (1..=projects).flat_map(|number| {
        let named = move |text: &String| text.replace(&name(0), &name(number));
        pattern.iter().map(named).collect::<Vec<_>>()
    });
    let (start, began, before) = (Instant::now(), Timestamp::now(), Programs::now());
    let parsed = children.map(|text| serde_json::from_str(&text).expect("an object"));
    setup.env.create(parsed).await;
    while !are_available(&setup).await {
        tokio::time::sleep(GLANCE).await;
    }
    let (took, programs) = (start.elapsed(), Programs::now());
    row("the cluster alone needs", &seconds(took));
    timeline::print(&setup, began).await;
    programs.print_since(&before);
}

/// The objects of a kind as text.
async fn patterns<K>(api: &Api<K>) -> Vec<String>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + Debug,
{
    let found = api.list(&ListParams::default()).await.expect("a list").items;
    found.iter().map(|object| pattern(object).to_string()).collect()
}

/// An object without the fields that the server and the operator set.
pub(crate) fn pattern<K: kube::Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let object = serde_json::to_value(object).expect("an object is JSON");
    let metadata = &object["metadata"];
    let mut pattern = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "spec": object["spec"],
        "metadata": { "name": metadata["name"], "labels": metadata["labels"] },
    });
    if let Value::Object(spec) = &mut pattern["spec"] {
        // Each Service gets its own address.
        spec.retain(|field, _| !field.starts_with("clusterIP"));
    }
    pattern
}

async fn are_available(setup: &BenchSetup) -> bool {
    let found = setup.deployments.list(&ListParams::default()).await;
    let mut found = found.expect("a list").items.into_iter();
    found.all(|deployment| {
        let wanted = deployment.spec.and_then(|spec| spec.replicas);
        deployment.status.and_then(|status| status.available_replicas) == wanted
    })
}
