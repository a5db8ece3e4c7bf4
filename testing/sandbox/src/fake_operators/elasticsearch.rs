//! Simulates Elastic's operator: an Elasticsearch becomes ready, and its first user gets a password.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::Part;
use super::scene::{Scene, is_said, now, number, password};

pub(super) const PART: Part = Part {
    group: "elasticsearch.k8s.elastic.co",
    version: "v1",
    kind: "Elasticsearch",
    plural: "elasticsearches",
    play: |scene, object| play(scene, object).boxed(),
};

const FIRST_USER: &str = "elastic";

async fn play(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    if object.metadata.deletion_timestamp.is_some() || is_said(&object, "/status/phase", "Ready") {
        return Ok(());
    }
    scene
        .say(&object, status(&object, "ApplyingChanges", "unknown", 0))
        .await?;
    scene.wait().await;
    let name = format!("{}-es-{FIRST_USER}-user", object.name_any());
    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), &object.namespace().unwrap_or_default());
    if secrets.get_opt(&name).await?.is_none() {
        let data = BTreeMap::from([(FIRST_USER.to_owned(), ByteString(password().into_bytes()))]);
        let secret = Secret {
            data: Some(data),
            ..Secret::default()
        };
        scene.own(&object, &name, secret).await?;
    }
    let sets = object.data["spec"]["nodeSets"].as_array().into_iter().flatten();
    let nodes = sets.map(|set| number(set, "/count", 1)).sum();
    scene.say(&object, status(&object, "Ready", "green", nodes)).await
}

fn status(object: &DynamicObject, phase: &str, health: &str, nodes: i64) -> Value {
    json!({
        "phase": phase,
        "health": health,
        "availableNodes": nodes,
        "version": object.data["spec"]["version"],
        "observedGeneration": object.metadata.generation,
        "conditions": [{
            "type": "Simulated",
            "status": "True",
            "message": "simulated: no Elasticsearch runs",
            "lastTransitionTime": now(),
        }],
    })
}
