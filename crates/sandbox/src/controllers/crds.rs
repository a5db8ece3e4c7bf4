//! `CustomResourceDefinitions`: served once their names are accepted, gone after their last object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::actor::{Actor, note};
use crate::handlers::{DeleteOptions, Endpoint};
use crate::schema::crd::{self, CLEANUP, STORAGE};
use crate::server::Server;
use crate::store::{Feed, Object, text};

/// Serves every definition in the store.
pub(crate) fn serve_all(server: &Server) {
    for (name, definition) in server.store.list(STORAGE, None).objects {
        server
            .registry
            .set_custom(&name, crd::resources(definition.value()));
    }
}

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    let mut served: HashMap<String, i64> = HashMap::new();
    loop {
        let changes = feed.next().await;
        let mut names: HashSet<String> = HashSet::new();
        for (storage, change) in &changes {
            if **storage == *STORAGE {
                names.insert(change.key.to_string());
            } else if change.deleted {
                // It may have been the last object of a definition that waits to go.
                let (group, plural) = storage.split_once('/').unwrap_or_default();
                names.insert(format!("{plural}.{group}"));
            }
        }
        for name in names {
            match actor.store().get(STORAGE, &name) {
                None => {
                    if served.remove(&name).is_some() {
                        actor.server.registry.set_custom(&name, Vec::new());
                    }
                }
                Some(definition) if definition.is_deleting() => {
                    note("CRD cleanup", Box::pin(clean_up(&actor, &definition)).await);
                }
                Some(definition) => {
                    let generation = definition
                        .value()
                        .pointer("/metadata/generation")
                        .and_then(Value::as_i64)
                        .unwrap_or_default();
                    if served.insert(name.clone(), generation) != Some(generation) {
                        actor
                            .server
                            .registry
                            .set_custom(&name, crd::resources(definition.value()));
                    }
                    note("CRD status", Box::pin(establish(&actor, &definition)).await);
                }
            }
        }
    }
}

/// Tells in the status that the names are accepted and the kind is served.
async fn establish(actor: &Actor, definition: &Arc<Object>) -> Result<(), crate::error::ApiError> {
    let now = actor.server.clock.seconds();
    actor
        .modify(STORAGE, "", definition.name(), Endpoint::Status, |object| {
            let names = object.pointer("/spec/names").cloned().unwrap_or_default();
            let stored: Vec<Value> = object
                .pointer("/spec/versions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter(|version| version.get("storage").and_then(Value::as_bool).unwrap_or_default())
                .filter_map(|version| version.get("name").cloned())
                .collect();
            let status = &mut object["status"];
            status["acceptedNames"] = names;
            let known = status["storedVersions"].as_array().cloned().unwrap_or_default();
            let missing = stored.into_iter().filter(|version| !known.contains(version)).collect::<Vec<_>>();
            status["storedVersions"] = known.iter().cloned().chain(missing).collect();
            if status["conditions"].as_array().is_none_or(Vec::is_empty) {
                status["conditions"] = json!([
                    {"type": "NamesAccepted", "status": "True", "lastTransitionTime": now, "reason": "NoConflicts",
                        "message": "no conflicts found"},
                    {"type": "Established", "status": "True", "lastTransitionTime": now, "reason": "InitialNamesAccepted",
                        "message": "the initial names have been accepted"},
                ]);
            }
        })
        .await
}

/// Deletes the objects of a definition, and lets it go when there are none.
async fn clean_up(actor: &Actor, definition: &Arc<Object>) -> Result<(), crate::error::ApiError> {
    let value = definition.value();
    let storage = format!(
        "{}/{}",
        text(value, "/spec/group"),
        text(value, "/spec/names/plural")
    );
    for (_, object) in actor.store().list(&storage, None).objects {
        if !object.is_deleting() {
            actor
                .delete(&storage, &object, &DeleteOptions::background())
                .await?;
        }
    }
    if !actor.store().list(&storage, None).objects.is_empty() {
        return Ok(());
    }
    actor.server.registry.set_custom(definition.name(), Vec::new());
    actor
        .modify(STORAGE, "", definition.name(), Endpoint::Main, |object| {
            remove_finalizer(object, CLEANUP);
        })
        .await
}

pub(crate) fn remove_finalizer(object: &mut Value, name: &str) {
    if let Some(list) = object
        .pointer_mut("/metadata/finalizers")
        .and_then(Value::as_array_mut)
    {
        list.retain(|finalizer| finalizer.as_str() != Some(name));
        if list.is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.shift_remove("finalizers");
        }
    }
}
