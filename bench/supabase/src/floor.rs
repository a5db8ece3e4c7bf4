//! What the cluster itself needs for the same children: no operator whose projects are ready can be faster.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stanchion_bench_bed::row;
use tokio::time::sleep;

use crate::seconds;
use crate::stage::Stage;

/// How many are made at a time.
const AT_A_TIME: usize = 16;
/// The cluster holds as much again for it; with more projects that would be another measurement.
const MOST_PROJECTS: usize = 100;
/// How often it is looked whether all are ready: seldom, because to list all of them is work for the server that is measured.
const GLANCE: Duration = Duration::from_secs(1);

/// Makes the projects' Services and Deployments once more, in a namespace of their own, and waits for them.
pub(crate) async fn measure(stage: &Stage, projects: usize) -> bool {
    if projects > MOST_PROJECTS {
        return true;
    }
    let cluster = stage.bed.cluster();
    let (client, namespace) = (cluster.client().await, cluster.namespace("floor").await);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let mut services = copies(&stage.services).await;
    for spec in services.iter_mut().filter_map(|service| service.spec.as_mut()) {
        // Each is given an address of its own.
        (spec.cluster_ip, spec.cluster_ips) = (None, None);
    }
    let copied = copies(&stage.deployments).await;
    let (count, start) = (copied.len(), Instant::now());
    create(&Api::namespaced(client, &namespace), services).await;
    create(&deployments, copied).await;
    while available(&deployments).await < count {
        sleep(GLANCE).await;
    }
    row("the cluster alone needs", &seconds(start.elapsed()));
    true
}

async fn copies<K>(api: &Api<K>) -> Vec<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let found = api.list(&ListParams::default()).await.expect("a list").items;
    let nameless = |mut object: K| {
        let meta = std::mem::take(object.meta_mut());
        *object.meta_mut() = ObjectMeta {
            name: meta.name,
            labels: meta.labels,
            ..ObjectMeta::default()
        };
        object
    };
    found.into_iter().map(nameless).collect()
}

async fn create<K>(api: &Api<K>, objects: Vec<K>)
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    stream::iter(objects)
        .map(|object| async move { api.create(&PostParams::default(), &object).await })
        .buffer_unordered(AT_A_TIME)
        .for_each(async |made| drop(made.expect("an object that is let in")))
        .await;
}

async fn available(deployments: &Api<Deployment>) -> usize {
    let found = deployments
        .list(&ListParams::default())
        .await
        .expect("a list")
        .items;
    let is_available = |deployment: &&Deployment| {
        let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        deployment
            .status
            .as_ref()
            .and_then(|status| status.available_replicas)
            == wanted
    };
    found.iter().filter(is_available).count()
}
