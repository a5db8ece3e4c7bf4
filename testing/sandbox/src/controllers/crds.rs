//! `CustomResourceDefinitions`: served once their names are accepted, deleted after their last object.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::actor::{Actor, note};
use crate::handlers::{DeleteOptions, Endpoint};
use crate::schema::crd::{self, CLEANUP, STORAGE};
use crate::server::Server;
use crate::store::{Feed, Object, text};

/// Serves every CRD in the store.
pub(crate) fn serve_all(server: &Server) {
    for (name, definition) in server.store.list(STORAGE, None).objects {
        let now = server.store.revision();
        server
            .registry
            .set_custom(&name, crd::resources(definition.value()), now);
    }
}

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    let mut served: HashMap<String, i64> = HashMap::new();
    loop {
        let changes = feed.next().await;
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (storage, change) in &changes {
            if **storage == *STORAGE {
                names.insert(change.key.to_string());
                if change.deleted {
                    // Another CRD may have waited for its names.
                    let all = actor.store().list(STORAGE, None).objects;
                    names.extend(all.into_iter().map(|(name, _)| name.to_string()));
                }
            } else if change.deleted {
                // It may have been the last object of a CRD that is being deleted.
                let (group, plural) = storage.split_once('/').unwrap_or_default();
                names.insert(format!("{plural}.{group}"));
            }
        }
        for name in names {
            match actor.store().get(STORAGE, &name) {
                None => {
                    if served.remove(&name).is_some() {
                        actor.server.registry.set_custom(&name, Vec::new(), 0);
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
                    let taken = taken_names(&actor, &definition);
                    if taken.is_empty() && served.insert(name.clone(), generation) != Some(generation) {
                        let resources = crd::resources(definition.value());
                        let now = actor.store().revision();
                        actor.server.registry.set_custom(&name, resources, now);
                    }
                    note(
                        "CRD status",
                        Box::pin(establish(&actor, &definition, taken)).await,
                    );
                }
            }
        }
    }
}

/// A name that another CRD of the same group already has: the reason, the field of the name, and the name.
struct Taken {
    reason: &'static str,
    key: &'static str,
    name: String,
}

/// The names that other CRDs already have, the one to report first at the front.
fn taken_names(actor: &Actor, definition: &Object) -> Vec<Taken> {
    let names = |object: &Object, keys: &[&str]| -> Vec<String> {
        let accepted = object.value().pointer("/status/acceptedNames");
        let all = keys
            .iter()
            .filter_map(|key| accepted?.get(key)?.as_str().map(str::to_owned));
        let short = accepted.and_then(|names| names.get("shortNames")?.as_array());
        let short = short
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned));
        all.chain(short.filter(|_| keys.contains(&"singular"))).collect()
    };
    let others: Vec<Arc<Object>> = actor
        .store()
        .list(STORAGE, None)
        .objects
        .into_iter()
        .map(|(_, other)| other)
        .filter(|other| other.uid() != definition.uid() && !other.is_deleting())
        .filter(|other| other.text("/spec/group") == definition.text("/spec/group"))
        .collect();
    // Plurals, singulars and short names share one namespace, kinds and list kinds another.
    let taken = |name: &str, keys: &[&str]| {
        !name.is_empty()
            && others
                .iter()
                .any(|other| names(other, keys).iter().any(|known| known == name))
    };
    let (words, kinds) = (["plural", "singular"], ["kind", "listKind"]);
    let short = definition
        .value()
        .pointer("/spec/names/shortNames")
        .and_then(Value::as_array);
    let short = short
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|name| taken(name, &words));
    let checks = [
        ("ListKindConflict", "listKind", &kinds),
        ("KindConflict", "kind", &kinds),
        ("SingularConflict", "singular", &words),
        ("PluralConflict", "plural", &words),
    ];
    let found = checks.into_iter().filter_map(|(reason, key, space)| {
        let name = definition.text(&format!("/spec/names/{key}")).to_owned();
        taken(&name, space).then_some(Taken { reason, key, name })
    });
    let short = short.map(|name| Taken {
        reason: "ShortNamesConflict",
        key: "shortNames",
        name: name.to_owned(),
    });
    found.chain(short).collect()
}

/// Reports in the status that the names are accepted and the kind is served, or why not.
async fn establish(
    actor: &Actor,
    definition: &Arc<Object>,
    taken: Vec<Taken>,
) -> Result<(), crate::error::ApiError> {
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
            if let Some(Taken { reason, name, .. }) = taken.first() {
                let free = |key: &str| !taken.iter().any(|taken| taken.key == key);
                let mut accepted = json!({"plural": names["plural"], "kind": ""});
                for key in ["plural", "singular", "kind", "listKind", "shortNames"] {
                    if free(key) && names.get(key).is_some() {
                        accepted[key] = names[key].clone();
                    }
                }
                status["acceptedNames"] = accepted;
                status["storedVersions"] = json!(stored);
                status["conditions"] = json!([
                    {"type": "NamesAccepted", "status": "False", "lastTransitionTime": now, "reason": reason,
                        "message": format!("\"{name}\" is already in use")},
                    {"type": "Established", "status": "False", "lastTransitionTime": now, "reason": "NotAccepted",
                        "message": "not all names are accepted"},
                ]);
                return;
            }
            status["acceptedNames"] = names;
            let known = status["storedVersions"].as_array().cloned().unwrap_or_default();
            let missing = stored.into_iter().filter(|version| !known.contains(version)).collect::<Vec<_>>();
            status["storedVersions"] = known.iter().cloned().chain(missing).collect();
            let accepted = status.pointer("/conditions/0/status") == Some(&json!("True"));
            if !accepted {
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

/// Deletes the objects of a CRD, and the CRD itself when there are none left.
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
        return announce(actor, definition).await;
    }
    actor.server.registry.set_custom(definition.name(), Vec::new(), 0);
    actor
        .modify(STORAGE, "", definition.name(), Endpoint::Main, |object| {
            remove_finalizer(object, CLEANUP);
        })
        .await
}

/// Reports in the status of a CRD that its objects are being deleted.
async fn announce(actor: &Actor, definition: &Arc<Object>) -> Result<(), crate::error::ApiError> {
    let now = actor.server.clock.seconds();
    let terminating = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now, "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    });
    actor
        .modify(STORAGE, "", definition.name(), Endpoint::Status, |object| {
            let conditions = object
                .pointer_mut("/status/conditions")
                .and_then(Value::as_array_mut);
            if let Some(conditions) = conditions
                && !conditions.iter().any(|one| one["type"] == "Terminating")
            {
                conditions.push(terminating.clone());
            }
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
