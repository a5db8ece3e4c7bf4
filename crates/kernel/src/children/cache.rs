//! The summaries of children, from the watch and from our own writes, whichever is newer.

use std::collections::HashSet;
use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use parking_lot::RwLock;
use serde_json::{Map, Value};

use super::owned;
use super::store::{Child, Store};
use super::{Children, Rollout};
use crate::apply::{Observed, annotated};
use crate::context::Parent;
use crate::watch::dependencies::{Key, version};
use crate::watch::related::is_ours;

/// A live object, from a watch event or from the response to a write.
pub(super) struct Live {
    meta: ObjectMeta,
    /// The whole object, with its metadata.
    value: Value,
}

impl Live {
    /// From a watch event. The spec is moved, not copied, because it can be large.
    pub(super) fn from_watch(object: DynamicObject) -> Option<Self> {
        let DynamicObject { metadata, data, .. } = object;
        let mut fields = match data {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.insert("metadata".to_owned(), serde_json::to_value(&metadata).ok()?);
        Some(Self {
            meta: metadata,
            value: Value::Object(fields),
        })
    }
}

/// The children of one kind that belong to a controller's objects.
pub(crate) struct ChildCache {
    kind: ApiResource,
    owner: (String, String),
    manager: String,
    store: RwLock<Store>,
}

impl ChildCache {
    /// An empty cache for owners of this group and kind, written by this field manager.
    pub(super) fn new(kind: ApiResource, owner: (String, String), manager: String) -> Self {
        Self {
            kind,
            owner,
            manager,
            store: RwLock::default(),
        }
    }

    /// All children of an object, by name.
    fn children(&self, parent: &Parent) -> Vec<Child> {
        let store = self.store.read();
        let of_key = store.of(&parent.key);
        let mut found: Vec<Child> = of_key
            .filter(|child| child.owner == parent.uid)
            .cloned()
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// Reads a live child of the owner with this uid.
    fn child(&self, live: &Live, owner: String) -> Option<Child> {
        let (meta, live) = (&live.meta, &live.value);
        let is_deployment = self.kind.group == "apps" && self.kind.kind == "Deployment";
        Some(Child {
            name: meta.name.clone()?,
            uid: meta.uid.as_deref()?.into(),
            owner,
            terminating: meta.deletion_timestamp.is_some(),
            rollout: is_deployment.then(|| Box::new(Rollout::of(live))),
            version: version(meta)?,
            intent: annotated(live).map(str::to_owned),
            owned: owned::of_live(live, &self.manager),
            verified: None,
        })
    }

    /// The key and the uid of the owner. `None` if the controller is not an object of this kind.
    fn owner_of(&self, meta: &ObjectMeta) -> Option<(Key, String)> {
        let references = meta.owner_references.as_ref()?;
        let controller = references
            .iter()
            .find(|reference| is_ours(reference, &self.owner))?;
        let key = Key {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: controller.name.clone(),
        };
        Some((key, controller.uid.clone()))
    }

    /// Records a child from a watch event. Returns the owners that must be reconciled: none for a stale event, and two if the
    /// child has gone from one to the other. The watch also reports our own writes.
    pub(super) fn see(&self, live: &Live) -> Vec<Key> {
        self.record(live, Origin::Watch).unwrap_or_default()
    }

    /// The watch has delivered everything up to this version.
    pub(super) fn delivered(&self, version: Option<u64>) {
        let mut store = self.store.write();
        store.watched = store.watched.max(version.unwrap_or_default());
    }

    fn record(&self, live: &Live, origin: Origin) -> Option<Vec<Key>> {
        let meta = &live.meta;
        let (uid, name) = (meta.uid.as_deref()?, meta.name.as_deref()?);
        let before = {
            let store = self.store.read();
            if is_outdated(&store, (uid, name), version(meta)?, origin) {
                return None;
            }
            store.holder(uid).cloned()
        };
        // A child that has lost its controller stays with its last owner, who does not see it any more: its deletion
        // makes room for another.
        let orphaned = || Some((Key::clone(before.as_deref()?), String::new()));
        let (key, owner) = self.owner_of(meta).or_else(orphaned)?;
        let mut child = self.child(live, owner)?;
        let mut woken = Vec::new();
        let mut store = self.store.write();
        // Another thread may have recorded it meanwhile.
        if is_outdated(&store, (uid, name), child.version, origin) {
            return None;
        }
        if store.holder(uid).is_some_and(|holder| **holder != key) {
            woken.extend(store.remove(uid, name));
        }
        let known = store.get_mut(&key, &child.name);
        let no_news = known.is_some_and(|before| {
            child.verified = before.verified;
            child.is_no_news_after(before)
        });
        store.insert(&key, child);
        if !no_news {
            woken.push(key);
        }
        Some(woken)
    }

    /// Drops a deleted child, and returns its last owner. Another child of its name may have come after it.
    pub(super) fn lose(&self, gone: &ObjectMeta) -> Option<Key> {
        self.store
            .write()
            .remove(gone.uid.as_deref()?, gone.name.as_deref()?)
    }

    /// Drops all children that a complete list does not contain, and returns their owners.
    pub(super) fn keep_only(&self, uids: &HashSet<String>) -> Vec<Key> {
        self.store.write().keep_only(uids)
    }

    /// Records the result of our write, so that the next pass does not use the state before it.
    pub(crate) fn wrote(&self, written: DynamicObject) {
        if let Some(live) = Live::from_watch(written) {
            drop(self.record(&live, Origin::Write));
        }
    }

    /// Records that a comparison found a child as intended.
    pub(crate) fn verified(&self, owner: &Key, name: &str) {
        self.update(owner, name, |child| child.verified = child.owned);
    }

    /// Records that a child is being deleted: a pass before the watch reports it does not delete the child again.
    pub(crate) fn deleted(&self, owner: &Key, child: &Observed) {
        self.update(owner, &child.name, |known| {
            known.terminating |= child.uid.as_deref() == Some(&*known.uid);
        });
    }

    fn update(&self, owner: &Key, name: &str, change: impl FnOnce(&mut Child)) {
        if let Some(child) = self.store.write().get_mut(owner, name) {
            change(child);
        }
    }
}

/// Where a state of a child comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Watch,
    /// The response to a write of ours, which may arrive after the watch has reported what happened since.
    Write,
}

/// Whether the store already has this state or a newer one. A child that it does not have is gone if the watch was past the
/// write: it has delivered the write and then the deletion.
fn is_outdated(store: &Store, (uid, name): (&str, &str), version: u64, origin: Origin) -> bool {
    match store.version_of(uid, name) {
        Some(known) => known >= version,
        None => origin == Origin::Write && version <= store.watched,
    }
}

/// The caches of a controller, one for each kind, in the order in which the controller lists its kinds.
#[derive(Clone, Default)]
pub struct ChildCaches(pub(super) Arc<[Arc<ChildCache>]>);

impl ChildCaches {
    /// The cache of a kind, if the controller has one.
    pub(crate) fn of_kind(&self, kind: &ApiResource) -> Option<&ChildCache> {
        let is_same = |cache: &&Arc<ChildCache>| same_kind(&cache.kind, kind);
        self.0.iter().find(is_same).map(AsRef::as_ref)
    }

    /// The cached children of an object, of all kinds.
    pub(crate) fn children(&self, parent: &Parent) -> Children {
        let of_kind = |cache: &Arc<ChildCache>| (cache.kind.clone(), cache.children(parent));
        Children {
            parent: parent.uid.clone(),
            by_kind: self.0.iter().map(of_kind).collect(),
        }
    }
}

/// Whether these are the same kind, in any version.
pub(super) fn same_kind(one: &ApiResource, other: &ApiResource) -> bool {
    one.kind == other.kind && one.group == other.group
}
