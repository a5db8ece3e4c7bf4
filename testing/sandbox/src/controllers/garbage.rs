//! Garbage collection by owner references: background, foreground, or orphan.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::actor::{Actor, note};
use super::crds::remove_finalizer;
use crate::error::ApiError;
use crate::handlers::{DeleteOptions, Endpoint, FOREGROUND, ORPHAN};
use crate::store::{self, Feed, Object, text};

/// The storage and the key of an object.
type Place = (Arc<str>, Arc<str>);

#[derive(Default)]
struct Graph {
    /// The dependents of a uid.
    dependents: HashMap<String, BTreeSet<Place>>,
    /// The object with a uid.
    places: HashMap<String, Place>,
}

fn owners(object: &Object) -> Vec<&Value> {
    object
        .value()
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect()
}

impl Graph {
    fn note(&mut self, storage: &Arc<str>, change: &store::Change) {
        let place = (storage.clone(), change.key.clone());
        if let Some(before) = &change.before {
            for owner in owners(before) {
                if let Some(set) = self.dependents.get_mut(text(owner, "/uid")) {
                    set.remove(&place);
                }
            }
        }
        if change.deleted {
            self.places.remove(change.after.uid());
            return;
        }
        self.places.insert(change.after.uid().to_owned(), place.clone());
        for owner in owners(&change.after) {
            self.dependents
                .entry(text(owner, "/uid").to_owned())
                .or_default()
                .insert(place.clone());
        }
    }

    fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    let mut graph = Graph::default();
    loop {
        let changes = feed.next().await;
        let mut suspects: BTreeSet<Place> = BTreeSet::new();
        let mut waiting: BTreeSet<Place> = BTreeSet::new();
        for (storage, change) in &changes {
            graph.note(storage, change);
        }
        for (storage, change) in &changes {
            let place = (storage.clone(), change.key.clone());
            if change.deleted {
                suspects.extend(graph.dependents(change.after.uid()));
                // Its owner may wait for it.
                let owners = owners(&change.after)
                    .into_iter()
                    .filter_map(|owner| graph.places.get(text(owner, "/uid")));
                waiting.extend(owners.cloned());
                if graph
                    .dependents
                    .get(change.after.uid())
                    .is_some_and(BTreeSet::is_empty)
                {
                    graph.dependents.remove(change.after.uid());
                }
            } else {
                if !owners(&change.after).is_empty() {
                    suspects.insert(place.clone());
                    let owners = owners(&change.after)
                        .into_iter()
                        .filter_map(|owner| graph.places.get(text(owner, "/uid")));
                    waiting.extend(owners.cloned());
                }
                if change.after.is_deleting() {
                    waiting.insert(place);
                }
            }
        }
        for place in waiting {
            note(
                "foreground deletion",
                Box::pin(attend(&actor, &graph, &place)).await,
            );
        }
        for place in suspects {
            note(
                "garbage collection",
                Box::pin(judge(&actor, &graph, &place)).await,
            );
        }
    }
}

fn object(actor: &Actor, (storage, key): &Place) -> Option<Arc<Object>> {
    actor.store().get(storage, key)
}

/// Whether the owner of a reference exists, or its kind is unknown.
fn exists(actor: &Actor, graph: &Graph, dependent: &Object, owner: &Value) -> bool {
    let uid = text(owner, "/uid");
    if let Some(found) = graph.places.get(uid).and_then(|place| object(actor, place)) {
        // An owner is in the same namespace or cluster-scoped.
        let near = found.namespace().is_empty() || found.namespace() == dependent.namespace();
        return near && found.uid() == uid;
    }
    let api_version = text(owner, "/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let Some(resource) = actor
        .server
        .registry
        .of_kind(group, Some(version), text(owner, "/kind"))
    else {
        // For a kind that is not served, the original waits, too.
        return true;
    };
    let namespace = if resource.namespaced {
        dependent.namespace()
    } else {
        ""
    };
    let found = actor
        .store()
        .get(&resource.storage, &store::key(namespace, text(owner, "/name")));
    found.is_some_and(|found| found.uid() == uid)
}

/// Deletes a dependent without any existing owner, and removes missing owners from one that still has others.
async fn judge(actor: &Actor, graph: &Graph, place: &Place) -> Result<(), ApiError> {
    let Some(dependent) = object(actor, place) else {
        return Ok(());
    };
    let all = owners(&dependent);
    if all.is_empty() || (dependent.is_deleting() && !dependent.finalizers().is_empty()) {
        return Ok(());
    }
    let lost: Vec<String> = all
        .iter()
        .filter(|owner| !exists(actor, graph, &dependent, owner))
        .map(|owner| text(owner, "/uid").to_owned())
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    if lost.len() == all.len() {
        return actor
            .delete(&place.0, &dependent, &DeleteOptions::background())
            .await;
    }
    actor
        .modify(
            &place.0,
            dependent.namespace(),
            dependent.name(),
            Endpoint::Main,
            |object| disown(object, &lost),
        )
        .await
}

fn disown(object: &mut Value, lost: &[String]) {
    if let Some(list) = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut)
    {
        list.retain(|owner| !lost.iter().any(|uid| uid == text(owner, "/uid")));
        if list.is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.shift_remove("ownerReferences");
        }
    }
}

/// Deletes or orphans the dependents of an object that waits for them.
async fn attend(actor: &Actor, graph: &Graph, place: &Place) -> Result<(), ApiError> {
    let Some(owner) = object(actor, place).filter(|owner| owner.is_deleting()) else {
        return Ok(());
    };
    let finalizers = owner.finalizers();
    let dependents: Vec<(Place, Arc<Object>)> = graph
        .dependents(owner.uid())
        .into_iter()
        .filter_map(|place| Some((place.clone(), object(actor, &place)?)))
        .filter(|(_, dependent)| {
            owners(dependent)
                .iter()
                .any(|one| text(one, "/uid") == owner.uid())
        })
        .collect();
    let done = if finalizers.contains(&ORPHAN) {
        for ((storage, _), dependent) in &dependents {
            let uid = [owner.uid().to_owned()];
            actor
                .modify(
                    storage,
                    dependent.namespace(),
                    dependent.name(),
                    Endpoint::Main,
                    |object| disown(object, &uid),
                )
                .await?;
        }
        ORPHAN
    } else if finalizers.contains(&FOREGROUND) {
        let mut blocked = false;
        for ((storage, _), dependent) in &dependents {
            if !dependent.is_deleting() {
                let deeper = !graph.dependents(dependent.uid()).is_empty();
                let options = if deeper {
                    DeleteOptions::foreground()
                } else {
                    DeleteOptions::background()
                };
                actor.delete(storage, dependent, &options).await?;
            }
            let still = actor
                .store()
                .get(storage, &store::key(dependent.namespace(), dependent.name()));
            let blocks = owners(dependent).iter().any(|one| {
                text(one, "/uid") == owner.uid() && one.get("blockOwnerDeletion") == Some(&json!(true))
            });
            blocked |= blocks && still.is_some_and(|still| still.uid() == dependent.uid());
        }
        if blocked {
            return Ok(());
        }
        FOREGROUND
    } else {
        return Ok(());
    };
    actor
        .modify(
            &place.0,
            owner.namespace(),
            owner.name(),
            Endpoint::Main,
            |object| remove_finalizer(object, done),
        )
        .await
}
