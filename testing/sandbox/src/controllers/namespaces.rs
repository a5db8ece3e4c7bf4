//! Namespaces: creates the default `ServiceAccount` and the CA certificate in each, and deletes the content of a
//! deleted one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use super::actor::{Actor, note};
use crate::error::ApiError;
use crate::handlers::DeleteOptions;
use crate::store::{Expect, Feed, Object};

const STORAGE: &str = "/namespaces";

/// The objects that every namespace has, and that are created again.
const FURNITURE: [(&str, &str); 2] = [
    ("/serviceaccounts", "default"),
    ("/configmaps", "kube-root-ca.crt"),
];

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    let mut terminating: HashSet<String> = HashSet::new();
    loop {
        let changes = feed.next().await;
        let mut affected: BTreeSet<String> = BTreeSet::new();
        for (storage, change) in &changes {
            if &**storage == STORAGE {
                affected.insert(change.key.to_string());
            } else if change.deleted && FURNITURE.contains(&(&**storage, change.after.name())) {
                affected.insert(change.after.namespace().to_owned());
            }
            if change.deleted && terminating.contains(change.after.namespace()) {
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

/// Deletes the content of a namespace, and the namespace itself when it is empty.
async fn empty(actor: &Actor, namespace: &Object) -> Result<(), ApiError> {
    let mut left = Left::default();
    for storage in actor.store().storages() {
        for (_, object) in actor.store().list(&storage, Some(namespace.name())).objects {
            if object.namespace() != namespace.name() {
                continue;
            }
            if !object.is_deleting() {
                actor.delete(&storage, &object, &DeleteOptions::now()).await?;
            }
            let key = crate::store::key(object.namespace(), object.name());
            if let Some(object) = actor.store().get(&storage, &key) {
                left.note(&storage, &object);
            }
        }
    }
    let Some(now) = actor.store().get(STORAGE, namespace.name()) else {
        return Ok(());
    };
    let mut next = now.value().clone();
    if !left.instances.is_empty() || next.pointer("/status/conditions").is_some() {
        left.set_conditions(&mut next["status"], &actor.server.clock.seconds());
    }
    if left.instances.is_empty() {
        next["spec"] = json!({});
    }
    if next == *now.value() {
        return Ok(());
    }
    let storage = STORAGE.into();
    let written = actor
        .store()
        .put(&storage, now.name(), Expect::Revision(now.revision()), next);
    if let Ok(written) = written
        && left.instances.is_empty()
        && written.finalizers().is_empty()
    {
        let _ = actor.store().remove(&storage, now.name(), written.revision());
    }
    Ok(())
}

/// What blocks the deletion of a namespace: how many objects of which kind, and their finalizers.
#[derive(Default)]
struct Left {
    instances: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn note(&mut self, storage: &str, object: &Object) {
        let (group, plural) = storage.split_once('/').unwrap_or_default();
        *self.instances.entry(format!("{plural}.{group}")).or_default() += 1;
        for finalizer in object.finalizers() {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Writes it into the conditions of the status. A condition keeps its time while it does not change.
    fn set_conditions(&self, status: &mut Value, now: &str) {
        let list = |counted: &BTreeMap<String, usize>, word: &str| {
            let items = counted
                .iter()
                .map(|(name, count)| format!("{name} {word} {count} resource instances"));
            items.collect::<Vec<_>>().join(", ")
        };
        let remaining = (!self.instances.is_empty()).then(|| {
            let list = list(&self.instances, "has");
            (
                "SomeResourcesRemain",
                format!("Some resources are remaining: {list}"),
            )
        });
        let held = (!self.finalizers.is_empty()).then(|| {
            let list = list(&self.finalizers, "in");
            let message = format!("Some content in the namespace has finalizers remaining: {list}");
            ("SomeFinalizersRemain", message)
        });
        let conditions = [
            (
                "NamespaceDeletionDiscoveryFailure",
                None,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                None,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            (
                "NamespaceContentRemaining",
                remaining,
                "ContentRemoved",
                "All content successfully removed",
            ),
            (
                "NamespaceFinalizersRemaining",
                held,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ];
        let before = status.get("conditions").cloned().unwrap_or_default();
        status["conditions"] = conditions
            .into_iter()
            .enumerate()
            .map(|(index, (name, trouble, reason, message))| {
                let has_trouble = trouble.is_some();
                let (reason, message) = trouble.unwrap_or_else(|| (reason, message.to_owned()));
                let same = before.get(index).filter(|old| old["message"] == message);
                let time = same.map_or_else(|| json!(now), |old| old["lastTransitionTime"].clone());
                let state = if has_trouble { "True" } else { "False" };
                json!({
                    "type": name, "status": state, "lastTransitionTime": time, "reason": reason, "message": message,
                })
            })
            .collect();
    }
}
