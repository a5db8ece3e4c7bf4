//! The summaries of children, from the watch and from our own writes, whichever is newer.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::{Map, Value};

use super::owned::{self, Digest};
use super::{ChildKind, Children};
use crate::apply::{Observed, annotated};
use crate::context::Parent;
use crate::watch::dependencies::{Key, version};
use crate::watch::related::is_ours;

/// The summary of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct Child<Summary> {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The uid of the object that it belongs to.
    pub owner: String,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// What its owner needs to know.
    pub summary: Summary,
    /// Its resource version.
    pub(super) version: u64,
    /// The hash of the intent that it was last written with.
    pub(super) intent: Option<String>,
    /// The digest of the current values of our fields.
    pub(super) owned: Option<Digest>,
    /// The digest of our fields when a comparison found the child as intended, although the digests differ.
    pub(super) verified: Option<Digest>,
}

impl<Summary> Child<Summary> {
    /// A child with only a name and a summary, for tests.
    pub fn named(name: &str, summary: Summary) -> Self {
        Self {
            name: name.to_owned(),
            uid: String::new(),
            owner: String::new(),
            terminating: false,
            summary,
            version: 0,
            intent: None,
            owned: None,
            verified: None,
        }
    }
}

impl<Summary> Child<Summary> {
    /// The digest of the current values of our fields: it changes only when they do.
    pub fn fingerprint(&self) -> Option<[u8; 16]> {
        self.owned.filter(|_| !self.terminating)
    }

    fn without_summary(&self) -> Child<()> {
        Child {
            name: self.name.clone(),
            uid: self.uid.clone(),
            owner: self.owner.clone(),
            terminating: self.terminating,
            summary: (),
            version: self.version,
            intent: self.intent.clone(),
            owned: self.owned,
            verified: self.verified,
        }
    }
}

impl<Summary: Clone + PartialEq> Child<Summary> {
    /// Reads a live child of the owner with this uid.
    fn of<K: ChildKind<Summary = Summary>>(live: &Live, owner: &str, manager: &str) -> Option<Self> {
        let (meta, live) = (&live.meta, &live.value);
        Some(Self {
            name: meta.name.clone()?,
            uid: meta.uid.clone()?,
            owner: owner.to_owned(),
            terminating: meta.deletion_timestamp.is_some(),
            summary: K::summarize(live),
            version: version(meta)?,
            intent: annotated(live).map(str::to_owned),
            owned: owned::of_live(live, manager),
            verified: None,
        })
    }

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
type ByOwner<S> = BTreeMap<Key, HashMap<String, Child<S>>>;

/// The owner that a child is cached for, whatever its references say now, and the cached version.
fn held<S>(all: &ByOwner<S>, child: &ObjectMeta) -> Option<(Key, u64)> {
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

fn remove<S>(all: &mut ByOwner<S>, owner: &Key, name: &str) {
    if let Some(children) = all.get_mut(owner) {
        children.remove(name);
        if children.is_empty() {
            all.remove(owner);
        }
    }
}

/// The children of one kind that belong to a controller's objects.
pub struct ChildCache<K: ChildKind> {
    owner: (String, String),
    manager: String,
    children: RwLock<ByOwner<K::Summary>>,
}

impl<K: ChildKind> ChildCache<K> {
    /// An empty cache for owners of this group and kind, written by this field manager.
    pub fn new(owner: (String, String), manager: String) -> Self {
        Self {
            owner,
            manager,
            children: RwLock::default(),
        }
    }

    /// One child of an object.
    pub fn child(&self, owner: &Key, name: &str) -> Option<Child<K::Summary>> {
        self.read().get(owner)?.get(name).cloned()
    }

    /// All children of an object, by name.
    pub fn children(&self, parent: &Parent) -> Vec<Child<K::Summary>> {
        self.each(parent, Child::clone)
    }

    fn each<S>(&self, parent: &Parent, copy: impl Fn(&Child<K::Summary>) -> Child<S>) -> Vec<Child<S>> {
        let all = self.read();
        let mut found: Vec<_> = all
            .get(&parent.key)
            .into_iter()
            .flat_map(HashMap::values)
            .filter(|child| child.owner == parent.uid)
            .map(copy)
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
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
        let before = held(&self.read(), meta);
        if let Some((_, known)) = before
            && version(meta).is_some_and(|now| known >= now)
        {
            return None;
        }
        // A child that has lost its controller stays with its last owner, who does not see it any more: its deletion
        // makes room for another.
        let orphaned = || Some((before?.0, String::new()));
        let (key, owner) = self.owner_of(meta).or_else(orphaned)?;
        let mut child = Child::of::<K>(live, &owner, &self.manager)?;
        let mut woken = Vec::new();
        let mut all = self.write();
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
        let mut all = self.write();
        let (holder, _) = held(&all, gone)?;
        remove(&mut all, &holder, gone.name.as_ref()?);
        Some(holder)
    }

    /// Drops all children that a complete list does not contain, and returns their owners.
    pub(super) fn keep_only(&self, uids: &HashSet<String>) -> Vec<Key> {
        // In a fixed order, so that a simulated run depends on its seed alone.
        let mut bereft = Vec::new();
        self.write().retain(|key, children| {
            let before = children.len();
            children.retain(|_, child| uids.contains(&child.uid));
            if children.len() < before {
                bereft.push(key.clone());
            }
            !children.is_empty()
        });
        bereft
    }

    fn update(&self, owner: &Key, name: &str, change: impl FnOnce(&mut Child<K::Summary>)) {
        let mut all = self.write();
        let child = all.get_mut(owner).and_then(|children| children.get_mut(name));
        if let Some(child) = child {
            change(child);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, ByOwner<K::Summary>> {
        self.children.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByOwner<K::Summary>> {
        self.children.write()
    }
}

/// A cache of any kind.
pub(crate) trait AnyCache: Send + Sync {
    /// All children of an object, by name.
    fn states(&self, parent: &Parent) -> Vec<Child<()>>;

    /// Records the result of our write, so that the next pass does not use the state before it.
    fn wrote(&self, written: DynamicObject);

    /// Records that a comparison found a child as intended.
    fn verified(&self, owner: &Key, name: &str);

    /// Records that a child is being deleted: a pass before the watch reports it does not delete the child again.
    fn deleted(&self, owner: &Key, child: &Observed);
}

impl<K: ChildKind> AnyCache for ChildCache<K> {
    fn states(&self, parent: &Parent) -> Vec<Child<()>> {
        self.each(parent, Child::without_summary)
    }

    fn wrote(&self, written: DynamicObject) {
        if let Some(live) = Live::from_watch(written) {
            drop(self.see(&live));
        }
    }

    fn verified(&self, owner: &Key, name: &str) {
        self.update(owner, name, |child| child.verified = child.owned);
    }

    fn deleted(&self, owner: &Key, child: &Observed) {
        self.update(owner, &child.name, |known| {
            known.terminating |= child.uid.as_ref() == Some(&known.uid);
        });
    }
}

/// The caches of a controller, one for each kind.
#[derive(Clone, Default)]
pub struct ChildCaches {
    typed: Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// In the order in which the controller lists its kinds.
    all: Arc<Vec<(ApiResource, Arc<dyn AnyCache>)>>,
}

impl ChildCaches {
    /// Adds the cache of a kind.
    pub(super) fn insert<K: ChildKind>(&mut self, cache: &Arc<ChildCache<K>>) {
        let typed = Arc::make_mut(&mut self.typed);
        typed.insert(TypeId::of::<K>(), Arc::clone(cache) as Arc<dyn Any + Send + Sync>);
        let all = Arc::make_mut(&mut self.all);
        all.push((
            ApiResource::erase::<K>(&()),
            Arc::clone(cache) as Arc<dyn AnyCache>,
        ));
    }

    /// The cache of a kind, if the controller has one.
    pub fn of<K: ChildKind>(&self) -> Option<Arc<ChildCache<K>>> {
        Arc::clone(self.typed.get(&TypeId::of::<K>())?).downcast().ok()
    }

    /// The cache of a kind, whatever its type.
    pub(crate) fn of_kind(&self, kind: &ApiResource) -> Option<&dyn AnyCache> {
        let same = |(cached, _): &&(ApiResource, Arc<dyn AnyCache>)| {
            cached.kind == kind.kind && cached.group == kind.group
        };
        self.all.iter().find(same).map(|(_, cache)| cache.as_ref())
    }

    /// The cached children of an object, of all kinds.
    pub(crate) fn children(&self, parent: &Parent) -> Children {
        let of_kind = |(kind, cache): &(ApiResource, Arc<dyn AnyCache>)| (kind.clone(), cache.states(parent));
        Children::new(parent, self.all.iter().map(of_kind).collect())
    }
}
