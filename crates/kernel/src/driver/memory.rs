//! What is remembered of an object between two passes. Nothing here is needed after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::core::ObjectMeta;

use crate::problem::Class;
use crate::reconciler::Object;
use crate::watch::primary::key;
use crate::watch::references::{Key, version};

/// How a pass ended: with a problem's class and reason, or well.
pub type Ended = Option<(Class, &'static str)>;

/// Memory of all objects of a controller.
pub struct Memory<O>(Mutex<HashMap<Key, Slot<O>>>);

struct Slot<O> {
    uid: Option<String>,
    /// Failures in a row, and the generation that they were failures of: a new spec starts from zero.
    failures: u32,
    generation: Option<i64>,
    /// The version that the cache has.
    seen: Option<u64>,
    /// The object as our own last write returned it, until the cache has it.
    written: Option<Arc<O>>,
    /// Our finalizer is removed. A removal that ends the object has no version of its own to know it by.
    released: bool,
    /// What the last pass ended with.
    ended: Ended,
}

impl<O> Slot<O> {
    fn new(meta: &ObjectMeta, ended: Ended) -> Self {
        Self {
            uid: meta.uid.clone(),
            failures: 0,
            generation: meta.generation,
            seen: None,
            written: None,
            released: false,
            ended,
        }
    }
}

impl<O> Default for Memory<O> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<O: Object> Memory<O> {
    /// The newest known state: the cache's, or what our own write returned while the watch lags behind it.
    /// Without this a pass right after a status write would decide on the status before it.
    ///
    /// The cache is asked last, for it has what is forgotten here; what it does not have is gone.
    pub fn newest(&self, key: &Key, cached: impl FnOnce() -> Option<Arc<O>>) -> Option<Arc<O>> {
        let written = self.lock().get(key).and_then(|slot| slot.written.clone());
        let cached = cached()?;
        match written {
            Some(written) if is_newer(written.as_ref(), cached.as_ref()) => Some(written),
            _ => Some(cached),
        }
    }

    /// Remembers what a write of ours returned, for as long as the cache does not have it: this is no second
    /// cache, and like the first it holds no managedFields.
    pub fn wrote(&self, object: &O) {
        self.slot(object.meta(), |slot| {
            slot.written = (version(object.meta()) > slot.seen).then(|| {
                let mut object = object.clone();
                object.meta_mut().managed_fields = None;
                Arc::new(object)
            });
        });
    }

    /// The cache has this version.
    pub fn saw(&self, meta: &ObjectMeta) {
        self.slot(meta, |slot| {
            slot.seen = version(meta);
            if let Some(written) = &slot.written
                && version(written.meta()) <= slot.seen
            {
                slot.written = None;
            }
        });
    }

    /// Remembers that our part in this object is over.
    pub fn released(&self, object: &O) {
        self.slot(object.meta(), |slot| slot.released = true);
    }

    /// Whether our part in this object is over.
    pub fn is_released(&self, object: &O) -> bool {
        self.slot(object.meta(), |slot| slot.released)
    }

    /// Counts a failure and returns how many there were in a row.
    pub fn failed(&self, object: &O) -> u32 {
        self.slot(object.meta(), |slot| {
            slot.failures = slot.failures.saturating_add(1);
            slot.failures
        })
    }

    /// Starts counting anew.
    pub fn succeeded(&self, object: &O) {
        self.slot(object.meta(), |slot| slot.failures = 0);
    }

    /// Remembers how the pass ended and returns how the one before did.
    pub fn ended(&self, object: &O, how: Ended) -> Ended {
        self.slot(object.meta(), |slot| std::mem::replace(&mut slot.ended, how))
    }

    /// Forgets an object that is gone and returns how its last pass ended.
    pub fn forget(&self, key: &Key) -> Ended {
        self.lock().remove(key).and_then(|slot| slot.ended)
    }

    fn slot<T>(&self, meta: &ObjectMeta, change: impl FnOnce(&mut Slot<O>) -> T) -> T {
        let mut memory = self.lock();
        let slot = memory.entry(key(meta)).or_insert_with(|| Slot::new(meta, None));
        if slot.uid != meta.uid {
            // Another object of the same name. It is counted where its predecessor was.
            *slot = Slot::new(meta, slot.ended);
        }
        if slot.generation != meta.generation {
            slot.generation = meta.generation;
            slot.failures = 0;
        }
        change(slot)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Slot<O>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_newer<O: Object>(ours: &O, cached: &O) -> bool {
    ours.meta().uid == cached.meta().uid && version(ours.meta()) > version(cached.meta())
}
