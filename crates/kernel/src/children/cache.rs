//! The summaries of children, from the watch and from our own writes, whichever is newer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use parking_lot::RwLock;
use serde_json::{Map, Value};

use super::owned::{self, Digest};
use super::{Children, Rollout};
use crate::apply::{Observed, annotated};
use crate::context::Parent;
use crate::watch::dependencies::{Key, version};
use crate::watch::related::is_ours;

/// The summary of a child.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Child {
    pub(super) name: String,
    pub(super) uid: String,
    /// The uid of the object that it belongs to; empty if it has lost its controller.
    pub(super) owner: String,
    /// Whether it is being deleted.
    pub(super) terminating: bool,
    /// The progress of a Deployment. In a box, because most children have none.
    pub(super) rollout: Option<Box<Rollout>>,
    /// Its resource version.
    version: u64,
    /// The hash of the intent that it was last written with.
    pub(super) intent: Option<String>,
    /// The digest of the current values of our fields.
    pub(super) owned: Option<Digest>,
    /// The digest of our fields when a comparison found the child as intended, although the digests differ.
    pub(super) verified: Option<Digest>,
}

impl Child {
    /// Whether the owner has nothing to do because of the change from `known`.
    fn is_no_news_after(&self, known: &Self) -> bool {
        let unversioned = Self {
            version: known.version,
            verified: known.verified,
            ..self.clone()
        };
        unversioned == *known
    }
}

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

/// By owner, then by name. In order, so that the owners in a namespace are together.
type ByOwner = BTreeMap<Key, HashMap<String, Child>>;

/// The owner that a child is cached for, whatever its references say now, and the cached version.
fn held(all: &ByOwner, child: &ObjectMeta) -> Option<(Key, u64)> {
    let (name, uid) = (child.name.as_ref()?, child.uid.as_ref()?);
    let namespace = child.namespace.as_deref().unwrap_or_default();
    let first = Key {
        namespace: namespace.to_owned(),
        name: String::new(),
    };
    all.range(first..)
        .take_while(|(owner, _)| owner.namespace == namespace)
        .find_map(|(owner, children)| {
            let known = children.get(name).filter(|known| known.uid == *uid)?;
            Some((owner.clone(), known.version))
        })
}

fn remove(all: &mut ByOwner, owner: &Key, name: &str) {
    if let Some(children) = all.get_mut(owner) {
        children.remove(name);
        if children.is_empty() {
            all.remove(owner);
        }
    }
}

/// The children of one kind that belong to a controller's objects.
pub(crate) struct ChildCache {
    kind: ApiResource,
    owner: (String, String),
    manager: String,
    children: RwLock<ByOwner>,
}

impl ChildCache {
    /// An empty cache for owners of this group and kind, written by this field manager.
    pub(super) fn new(kind: ApiResource, owner: (String, String), manager: String) -> Self {
        Self {
            kind,
            owner,
            manager,
            children: RwLock::default(),
        }
    }

    /// All children of an object, by name.
    fn children(&self, parent: &Parent) -> Vec<Child> {
        let all = self.children.read();
        let of_key = all.get(&parent.key).into_iter().flat_map(HashMap::values);
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
            uid: meta.uid.clone()?,
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

    /// Records a live child. Returns the owners that must be reconciled: none for a stale event, and two if the child has
    /// gone from one to the other. The watch also reports our own writes.
    pub(super) fn see(&self, live: &Live) -> Vec<Key> {
        self.record(live).unwrap_or_default()
    }

    fn record(&self, live: &Live) -> Option<Vec<Key>> {
        let meta = &live.meta;
        let before = held(&self.children.read(), meta);
        if let Some((_, known)) = before
            && version(meta).is_some_and(|now| known >= now)
        {
            return None;
        }
        // A child that has lost its controller stays with its last owner, who does not see it any more: its deletion
        // makes room for another.
        let orphaned = || Some((before?.0, String::new()));
        let (key, owner) = self.owner_of(meta).or_else(orphaned)?;
        let mut child = self.child(live, owner)?;
        let mut woken = Vec::new();
        let mut all = self.children.write();
        if let Some((holder, known)) = held(&all, meta) {
            // Another thread may have recorded it meanwhile.
            if known >= child.version {
                return None;
            }
            if holder != key {
                remove(&mut all, &holder, &child.name);
                woken.push(holder);
            }
        }
        let known = all.entry(key.clone()).or_default();
        let no_news = known.get(&child.name).is_some_and(|before| {
            child.verified = before.verified;
            child.is_no_news_after(before)
        });
        known.insert(child.name.clone(), child);
        if !no_news {
            woken.push(key);
        }
        Some(woken)
    }

    /// Drops a deleted child, and returns its last owner. Another child of its name may have come after it.
    pub(super) fn lose(&self, gone: &ObjectMeta) -> Option<Key> {
        let mut all = self.children.write();
        let (holder, _) = held(&all, gone)?;
        remove(&mut all, &holder, gone.name.as_ref()?);
        Some(holder)
    }

    /// Drops all children that a complete list does not contain, and returns their owners.
    pub(super) fn keep_only(&self, uids: &HashSet<String>) -> Vec<Key> {
        // In a fixed order, so that a simulated run depends on its seed alone.
        let mut bereft = Vec::new();
        self.children.write().retain(|key, children| {
            let before = children.len();
            children.retain(|_, child| uids.contains(&child.uid));
            if children.len() < before {
                bereft.push(key.clone());
            }
            !children.is_empty()
        });
        bereft
    }

    /// Records the result of our write, so that the next pass does not use the state before it.
    pub(crate) fn wrote(&self, written: DynamicObject) {
        if let Some(live) = Live::from_watch(written) {
            drop(self.see(&live));
        }
    }

    /// Records that a comparison found a child as intended.
    pub(crate) fn verified(&self, owner: &Key, name: &str) {
        self.update(owner, name, |child| child.verified = child.owned);
    }

    /// Records that a child is being deleted: a pass before the watch reports it does not delete the child again.
    pub(crate) fn deleted(&self, owner: &Key, child: &Observed) {
        self.update(owner, &child.name, |known| {
            known.terminating |= child.uid.as_ref() == Some(&known.uid);
        });
    }

    fn update(&self, owner: &Key, name: &str, change: impl FnOnce(&mut Child)) {
        let mut all = self.children.write();
        let child = all.get_mut(owner).and_then(|children| children.get_mut(name));
        if let Some(child) = child {
            change(child);
        }
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
