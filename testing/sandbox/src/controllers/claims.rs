//! Removes the protection finalizer from a deleted claim when no pod uses it any more.

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
        // A claim was deleted, or a pod that may use one has ended.
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

/// Whether a scheduled pod that has not ended uses the claim.
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
