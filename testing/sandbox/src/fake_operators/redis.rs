//! Simulates OT-CONTAINER-KIT's redis-operator: each of its objects gets a `StatefulSet`, whose pods the cluster
//! simulates. As with the real operator, the objects have almost no status.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

use super::scene::{Scene, number, text};
use super::{Part, Play};

pub(super) const ALONE: Part = part("Redis", "redis", |scene, object| alone(scene, object).boxed());
pub(super) const REPLICATION: Part = part("RedisReplication", "redisreplications", |scene, object| {
    replication(scene, object).boxed()
});
pub(super) const SENTINEL: Part = part("RedisSentinel", "redissentinels", |scene, object| {
    sentinel(scene, object).boxed()
});

const fn part(kind: &'static str, plural: &'static str, play: Play) -> Part {
    Part {
        group: "redis.redis.opstreelabs.in",
        version: "v1beta2",
        kind,
        plural,
        play,
    }
}

async fn alone(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    stateful_set(&scene, &object, &object.name_any(), 1).await
}

async fn replication(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    let servers = number(&object.data, "/spec/clusterSize", 1);
    stateful_set(&scene, &object, &object.name_any(), servers).await?;
    let master = format!("{}-0", object.name_any());
    if text(&object.data, "/status/masterNode") == master {
        return Ok(());
    }
    scene.say(&object, json!({ "masterNode": master })).await
}

async fn sentinel(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    let name = format!("{}-sentinel", object.name_any());
    let sentinels = number(&object.data, "/spec/clusterSize", 1);
    stateful_set(&scene, &object, &name, sentinels).await
}

async fn stateful_set(
    scene: &Scene,
    object: &DynamicObject,
    name: &str,
    replicas: i64,
) -> Result<(), kube::Error> {
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    scene.wait().await;
    let labels = BTreeMap::from([("app".to_owned(), name.to_owned())]);
    let container = Container {
        name: name.to_owned(),
        image: Some(text(&object.data, "/spec/kubernetesConfig/image").to_owned()),
        ..Container::default()
    };
    let pod = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container],
            ..PodSpec::default()
        }),
    };
    let set = StatefulSet {
        spec: Some(StatefulSetSpec {
            replicas: i32::try_from(replicas).ok(),
            selector: LabelSelector {
                match_labels: Some(labels),
                ..LabelSelector::default()
            },
            service_name: Some(format!("{name}-headless")),
            template: pod,
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    };
    scene.own(object, name, set).await
}
