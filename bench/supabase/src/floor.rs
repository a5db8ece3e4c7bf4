//! What the cluster itself needs for the same children: no operator whose projects are ready can be faster.

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::NamespaceResourceScope;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stanchion_bench_bed::row;

use crate::seconds;
use crate::stage::{Stage, name};

/// How often it is looked whether all are ready: seldom, because to list all of them is work for the server that is measured.
const GLANCE: Duration = Duration::from_secs(2);

/// Lets the operator make one project on a cluster of its own, and goes; then makes that project's Services and
/// Deployments again and again, under other names, and waits for their pods.
pub(crate) async fn measure(binary: &Path, projects: usize) {
    let stage = Stage::new(1).await;
    let operator = stage.operator(binary);
    stage.create(1).await;
    stage.running(1).await;
    drop(operator);
    let pattern = [
        patterns(&stage.services).await,
        patterns(&stage.deployments).await,
    ]
    .concat();
    let children = (1..=projects).flat_map(|number| {
        let named = move |text: &String| text.replace(&name(0), &name(number));
        pattern.iter().map(named).collect::<Vec<_>>()
    });
    let start = Instant::now();
    let parsed = children.map(|text| serde_json::from_str(&text).expect("an object"));
    stage.bed.create(parsed).await;
    while !are_available(&stage).await {
        tokio::time::sleep(GLANCE).await;
    }
    row("the cluster alone needs", &seconds(start.elapsed()));
}

/// The objects of a kind as text, without what the server and the operator say about them.
async fn patterns<K>(api: &Api<K>) -> Vec<String>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + Debug,
{
    let found = api.list(&ListParams::default()).await.expect("a list").items;
    let pattern = |object: K| {
        let object = serde_json::to_value(&object).expect("an object is JSON");
        let metadata = &object["metadata"];
        let mut pattern = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "spec": object["spec"],
            "metadata": { "name": metadata["name"], "labels": metadata["labels"] },
        });
        if let Value::Object(spec) = &mut pattern["spec"] {
            // Each Service is given an address of its own.
            spec.retain(|field, _| !field.starts_with("clusterIP"));
        }
        pattern.to_string()
    };
    found.into_iter().map(pattern).collect()
}

async fn are_available(stage: &Stage) -> bool {
    let found = stage.deployments.list(&ListParams::default()).await;
    let mut found = found.expect("a list").items.into_iter();
    found.all(|deployment| {
        let wanted = deployment.spec.and_then(|spec| spec.replicas);
        deployment.status.and_then(|status| status.available_replicas) == wanted
    })
}
