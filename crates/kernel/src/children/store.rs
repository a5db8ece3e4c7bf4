//! The summaries of children, by owner and by uid.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::core::ApiResource;

use super::Rollout;
use super::owned::Digest;
use crate::apply::Observed;
use crate::watch::dependencies::Key;

/// The summary of a child.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Child {
    pub(super) name: String,
    pub(super) uid: Arc<str>,
    /// The uid of the object that it belongs to; empty if it has lost its controller.
    pub(super) owner: String,
    /// Whether it is being deleted.
    pub(super) terminating: bool,
    /// The progress of a Deployment. In a box, because most children have none.
    pub(super) rollout: Option<Box<Rollout>>,
    /// Its resource version.
    pub(super) version: u64,
    /// The hash of the intent that it was last written with.
    pub(super) intent: Option<String>,
    /// The digest of the current values of our fields.
    pub(super) owned: Option<Digest>,
    /// The digest of our fields when a comparison found the child as intended, although the digests differ.
    pub(super) verified: Option<Digest>,
}

impl Child {
    /// The child as a change names it.
    pub(super) fn observed(&self, resource: &ApiResource) -> Observed {
        Observed {
            resource: resource.clone(),
            name: self.name.clone(),
            uid: Some(self.uid.to_string()),
        }
    }

    /// Whether the owner has nothing to do because of the change from `known`.
    pub(super) fn is_no_news_after(&self, known: &Self) -> bool {
        let unversioned = Self {
            version: known.version,
            verified: known.verified,
            ..self.clone()
        };
        unversioned == *known
    }
}

/// The children of one kind. An event names a child by its uid, and a pass by its owner and its name.
#[derive(Default)]
pub(super) struct Store {
    /// By owner, then by name. Owners are in order, so that a simulated run depends on its seed alone.
    by_owner: BTreeMap<Arc<Key>, HashMap<String, Child>>,
    /// The owner that a child is kept for, whatever its references say now. Without it, each event would be looked up among
    /// all owners of the namespace.
    by_uid: HashMap<Arc<str>, Arc<Key>>,
    /// The highest resource version that the watch has delivered, that of a deletion included.
    pub(super) watched: u64,
}

impl Store {
    /// The children of an owner.
    pub(super) fn of(&self, owner: &Key) -> impl Iterator<Item = &Child> {
        self.by_owner.get(owner).into_iter().flat_map(HashMap::values)
    }

    /// The owner that a child is kept for.
    pub(super) fn holder(&self, uid: &str) -> Option<&Arc<Key>> {
        self.by_uid.get(uid)
    }

    /// The resource version of a child.
    pub(super) fn version_of(&self, uid: &str, name: &str) -> Option<u64> {
        let children = self.by_owner.get(self.holder(uid)?)?;
        Some(children.get(name)?.version)
    }

    /// The child of this owner and name.
    pub(super) fn get_mut(&mut self, owner: &Key, name: &str) -> Option<&mut Child> {
        self.by_owner.get_mut(owner)?.get_mut(name)
    }

    /// Adds a child, or replaces that of its name.
    pub(super) fn insert(&mut self, owner: &Key, child: Child) {
        let known = self.by_owner.get_key_value(owner);
        let owner = known.map_or_else(|| Arc::new(owner.clone()), |(owner, _)| Arc::clone(owner));
        let uid = Arc::clone(&child.uid);
        let children = self.by_owner.entry(Arc::clone(&owner)).or_default();
        if let Some(replaced) = children.insert(child.name.clone(), child) {
            self.by_uid.remove(&replaced.uid);
        }
        self.by_uid.insert(uid, owner);
    }

    /// Drops a child, and returns its owner.
    pub(super) fn remove(&mut self, uid: &str, name: &str) -> Option<Key> {
        let owner = self.by_uid.remove(uid)?;
        let children = self.by_owner.get_mut(&owner)?;
        children.remove(name);
        if children.is_empty() {
            self.by_owner.remove(&owner);
        }
        Some(Key::clone(&owner))
    }

    /// Drops all children but these, and returns the owners of those that it dropped.
    pub(super) fn keep_only(&mut self, uids: &HashSet<String>) -> Vec<Key> {
        let mut bereft = Vec::new();
        self.by_owner.retain(|owner, children| {
            let before = children.len();
            children.retain(|_, child| uids.contains(&*child.uid));
            if children.len() < before {
                bereft.push(Key::clone(owner));
            }
            !children.is_empty()
        });
        self.by_uid.retain(|uid, _| uids.contains(&**uid));
        bereft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Key {
        Key {
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    fn child(name: &str, uid: &str, version: u64) -> Child {
        Child {
            name: name.into(),
            uid: uid.into(),
            owner: String::new(),
            terminating: false,
            rollout: None,
            version,
            intent: None,
            owned: None,
            verified: None,
        }
    }

    fn versions(store: &Store, of: &str) -> Vec<u64> {
        store.of(&owner(of)).map(|child| child.version).collect()
    }

    #[test]
    fn a_child_is_found_by_its_uid_and_by_its_owner() {
        let mut store = Store::default();
        store.insert(&owner("one"), child("web", "a", 1));
        store.insert(&owner("two"), child("web-2", "b", 2));
        store.insert(&owner("one"), child("web", "a", 3));
        assert_eq!(store.version_of("a", "web"), Some(3));
        assert_eq!(store.version_of("b", "web-2"), Some(2));
        assert_eq!(store.holder("a").map(|owner| owner.name.as_str()), Some("one"));
        assert_eq!(versions(&store, "one"), [3]);
        assert_eq!(store.remove("a", "web"), Some(owner("one")));
        assert_eq!(store.remove("a", "web"), None);
        assert_eq!(store.version_of("a", "web"), None);
        assert_eq!(versions(&store, "one"), [0; 0]);
        assert_eq!(versions(&store, "two"), [2]);
    }

    /// The deletion of a child may be reported after its successor was created.
    #[test]
    fn a_late_deletion_does_not_take_the_successor_of_the_name() {
        let mut store = Store::default();
        store.insert(&owner("one"), child("web", "a", 1));
        store.insert(&owner("one"), child("web", "b", 3));
        assert_eq!(store.remove("a", "web"), None);
        assert_eq!(versions(&store, "one"), [3]);
    }

    #[test]
    fn what_a_list_does_not_contain_is_dropped() {
        let mut store = Store::default();
        for (of, name, uid) in [("two", "x", "a"), ("one", "y", "b"), ("one", "z", "c")] {
            store.insert(&owner(of), child(name, uid, 1));
        }
        let bereft = store.keep_only(&HashSet::from(["c".to_owned()]));
        assert_eq!(bereft, [owner("one"), owner("two")]);
        assert_eq!(store.version_of("b", "y"), None);
        assert_eq!(store.version_of("c", "z"), Some(1));
        assert_eq!((store.by_owner.len(), store.by_uid.len()), (1, 1));
    }
}
