//! What is remembered of an object between two passes. Nothing here is needed after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// The object as our own last write returned it.
    written: Option<Arc<O>>,
    /// What the last pass ended with.
    ended: Ended,
}

impl<O> Default for Memory<O> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<O: Object> Memory<O> {
    /// The newest known state: the cache's, or what our own write returned while the watch lags behind it.
    /// Without this a pass right after a status write would decide on the status before it.
    pub fn newest(&self, cached: Arc<O>) -> Arc<O> {
        let mut memory = self.lock();
        let Some(slot) = memory.get_mut(&key(cached.meta())) else {
            return cached;
        };
        match &slot.written {
            Some(written) if is_newer(written.as_ref(), cached.as_ref()) => Arc::clone(written),
            _ => {
                slot.written = None;
                cached
            }
        }
    }

    /// Remembers what a write of ours returned.
    pub fn wrote(&self, object: &O) {
        self.slot(object, |slot| slot.written = Some(Arc::new(object.clone())));
    }

    /// Counts a failure and returns how many there were in a row.
    pub fn failed(&self, object: &O) -> u32 {
        self.slot(object, |slot| {
            slot.failures = slot.failures.saturating_add(1);
            slot.failures
        })
    }

    /// Starts counting anew.
    pub fn succeeded(&self, object: &O) {
        self.slot(object, |slot| slot.failures = 0);
    }

    /// Remembers how the pass ended and returns how the one before did.
    pub fn ended(&self, object: &O, how: Ended) -> Ended {
        self.slot(object, |slot| std::mem::replace(&mut slot.ended, how))
    }

    /// Forgets an object that is gone and returns how its last pass ended.
    pub fn forget(&self, key: &Key) -> Ended {
        self.lock().remove(key).and_then(|slot| slot.ended)
    }

    fn slot<T>(&self, object: &O, change: impl FnOnce(&mut Slot<O>) -> T) -> T {
        let meta = object.meta();
        let mut memory = self.lock();
        let fresh = || Slot {
            uid: meta.uid.clone(),
            failures: 0,
            generation: meta.generation,
            written: None,
            ended: None,
        };
        let slot = memory.entry(key(meta)).or_insert_with(fresh);
        if slot.uid != meta.uid {
            *slot = fresh();
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
