//! Claims that are deleted stay while a pod uses them, and then go: the finalizer that every claim has is taken away.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::actor::{Actor, note};
use crate::handlers::Endpoint;
use crate::lifecycle::CLAIM_PROTECTION;
use crate::store::{Feed, Object};

const STORAGE: &str = "/persistentvolumeclaims";
const PODS: &str = "/pods";

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    loop {
        let changes = feed.next().await;
        // A claim is deleted, or a pod that may have used one ends.
        let affected: BTreeSet<&str> = changes
            .iter()
            .filter(|(storage, _)| matches!(&**storage, STORAGE | PODS))
            .map(|(_, change)| change.after.namespace())
            .collect();
        for namespace in affected {
            for (_, claim) in actor.store().list(STORAGE, Some(namespace)).objects {
                if claim.is_deleting() && !is_used(&actor, &claim) {
                    let (name, endpoint) = (claim.name(), Endpoint::Main);
                    let released = actor.modify(STORAGE, namespace, name, endpoint, release);
                    note("claim protection", Box::pin(released).await);
                }
            }
        }
    }
}

fn release(claim: &mut Value) {
    if let Some(Value::Array(list)) = claim.pointer_mut("/metadata/finalizers") {
        list.retain(|name| *name != json!(CLAIM_PROTECTION));
    }
}

/// Whether a pod that has a node and has not ended names it.
fn is_used(actor: &Actor, claim: &Object) -> bool {
    let pods = actor.store().list(PODS, Some(claim.namespace())).objects;
    pods.iter().any(|(_, pod)| {
        let volumes = pod.value().pointer("/spec/volumes").and_then(Value::as_array);
        let mut names = volumes
            .into_iter()
            .flatten()
            .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName"));
        !pod.text("/spec/nodeName").is_empty()
            && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
            && names.any(|name| *name == json!(claim.name()))
    })
}
