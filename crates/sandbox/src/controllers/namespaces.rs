//! Namespaces: each gets its `ServiceAccount` and the cluster's certificate; one that goes takes everything along.

use std::collections::HashSet;

use serde_json::json;

use super::actor::{Actor, note};
use crate::error::ApiError;
use crate::handlers::DeleteOptions;
use crate::store::{Expect, Feed, Object};

const STORAGE: &str = "/namespaces";

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    let mut terminating: HashSet<String> = HashSet::new();
    loop {
        let changes = feed.next().await;
        let mut affected: HashSet<String> = HashSet::new();
        for (storage, change) in &changes {
            if &**storage == STORAGE {
                affected.insert(change.key.to_string());
            } else if change.deleted && terminating.contains(change.after.namespace()) {
                affected.insert(change.after.namespace().to_owned());
            }
        }
        for name in affected {
            match actor.store().get(STORAGE, &name) {
                None => {
                    terminating.remove(&name);
                }
                Some(namespace) if namespace.is_deleting() => {
                    terminating.insert(name);
                    note("namespace deletion", Box::pin(empty(&actor, &namespace)).await);
                }
                Some(namespace) => note(
                    "namespace content",
                    Box::pin(fill(&actor, namespace.name())).await,
                ),
            }
        }
    }
}

async fn fill(actor: &Actor, name: &str) -> Result<(), ApiError> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let bundle = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "annotations": {
            "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
        }},
        "data": {"ca.crt": ""},
    });
    for (storage, object) in [("/serviceaccounts", account), ("/configmaps", bundle)] {
        let key = crate::store::key(name, object["metadata"]["name"].as_str().unwrap_or_default());
        if actor.store().get(storage, &key).is_none() {
            actor.create(storage, name, &object).await?;
        }
    }
    Ok(())
}

/// Deletes what is in a namespace, and the namespace itself when nothing is left.
async fn empty(actor: &Actor, namespace: &Object) -> Result<(), ApiError> {
    let mut left = false;
    for storage in actor.store().storages() {
        for (_, object) in actor.store().list(&storage, Some(namespace.name())).objects {
            if object.namespace() != namespace.name() {
                continue;
            }
            if !object.is_deleting() {
                actor.delete(&storage, &object, &DeleteOptions::now()).await?;
            }
            left |= actor
                .store()
                .get(&storage, &crate::store::key(object.namespace(), object.name()))
                .is_some();
        }
    }
    if left {
        return Ok(());
    }
    let Some(now) = actor.store().get(STORAGE, namespace.name()) else {
        return Ok(());
    };
    let mut last = now.value().clone();
    last["spec"] = json!({});
    let storage = STORAGE.into();
    if let Ok(written) = actor
        .store()
        .put(&storage, now.name(), Expect::Revision(now.revision()), last)
        && written.finalizers().is_empty()
    {
        let _ = actor.store().remove(&storage, now.name(), written.revision());
    }
    Ok(())
}
