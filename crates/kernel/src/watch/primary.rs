//! Has an object of ours changed in a way that matters?
//!
//! The API server tells of every write, our own status writes among them. An object is worth a reconcile
//! when its generation, its deletion, our finalizer or an annotation that we honour changed; everything
//! else would be a loop that feeds itself.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::watcher::Event;

use super::references::{Key, version};
use crate::reconciler::{Object, Reconciler};

/// What the primary watch has to say.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Reconcile this object.
    Changed(Key),
    /// This object is gone.
    Gone(Key),
}

/// The fingerprint of every object that there is: what of it would wake a reconcile.
#[derive(Clone, Default)]
pub struct Fingerprints(Arc<Mutex<HashMap<Key, Seen>>>);

struct Seen {
    version: Option<u64>,
    fingerprint: u64,
}

impl Seen {
    fn of<R: Reconciler>(meta: &ObjectMeta) -> Self {
        Self {
            version: version(meta),
            fingerprint: fingerprint::<R>(meta),
        }
    }
}

impl Fingerprints {
    /// Takes an object that we have written ourselves as seen, so that the echo of the write wakes nobody.
    /// Told before the write, too, of the same version: the watch may be faster than the answer. Where the watch is
    /// ahead, what it told is newer.
    pub fn expect<R: Reconciler>(&self, meta: &ObjectMeta) {
        if let Some(seen) = self.lock().get_mut(&key(meta))
            && seen.version <= version(meta)
        {
            *seen = Seen::of::<R>(meta);
        }
    }

    /// Whether there is such an object, as far as the watch has told.
    pub fn has(&self, key: &Key) -> bool {
        self.lock().contains_key(key)
    }

    fn changed<R: Reconciler>(&self, meta: &ObjectMeta) -> bool {
        let now = Seen::of::<R>(meta);
        let fingerprint = now.fingerprint;
        let before = self.lock().insert(key(meta), now);
        before.is_none_or(|before| before.fingerprint != fingerprint)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The object's name as a key.
pub fn key(meta: &ObjectMeta) -> Key {
    Key {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
    }
}

fn fingerprint<R: Reconciler>(meta: &ObjectMeta) -> u64 {
    let mut hasher = DefaultHasher::new();
    meta.uid.hash(&mut hasher);
    meta.generation.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    let finalizers = meta.finalizers.iter().flatten();
    R::FINALIZER
        .map(|ours| finalizers.filter(|entry| *entry == ours).count())
        .hash(&mut hasher);
    let annotation = |name| meta.annotations.as_ref().and_then(|all| all.get(name));
    for name in R::ANNOTATIONS {
        annotation(*name).hash(&mut hasher);
    }
    hasher.finish()
}

/// Turns the events of the primary watch into news.
pub struct Primary<R: Reconciler> {
    fingerprints: Fingerprints,
    /// The objects of the list under way; what is not in it when it ends has gone unseen.
    listing: Option<HashSet<Key>>,
    reconciler: std::marker::PhantomData<R>,
}

impl<R: Reconciler> Primary<R> {
    /// Starts without having seen anything.
    pub fn new(fingerprints: Fingerprints) -> Self {
        Self {
            fingerprints,
            listing: None,
            reconciler: std::marker::PhantomData,
        }
    }

    /// The news in one event.
    pub fn hear<O: Object>(&mut self, event: &Event<DeserializeGuard<O>>) -> Vec<News> {
        match event {
            Event::Init => {
                self.listing = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let meta = kube::Resource::meta(object);
                let key = key(meta);
                if let (Event::InitApply(_), Some(listing)) = (event, &mut self.listing) {
                    listing.insert(key.clone());
                }
                self.fingerprints
                    .changed::<R>(meta)
                    .then_some(News::Changed(key))
                    .into_iter()
                    .collect()
            }
            Event::Delete(object) => {
                let key = key(kube::Resource::meta(object));
                self.fingerprints.lock().remove(&key);
                vec![News::Gone(key)]
            }
            Event::InitDone => {
                let listed = self.listing.take().unwrap_or_default();
                let mut known = self.fingerprints.lock();
                let gone: Vec<Key> = known
                    .keys()
                    .filter(|key| !listed.contains(*key))
                    .cloned()
                    .collect();
                known.retain(|key, _| listed.contains(key));
                gone.into_iter().map(News::Gone).collect()
            }
        }
    }
}
