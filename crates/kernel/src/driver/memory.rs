//! What a controller knows about its objects between two passes.

use std::collections::HashMap;
use std::sync::Arc;

use kube::core::ObjectMeta;
use parking_lot::Mutex;

use crate::problem::Class;
use crate::reconciler::Object;
use crate::watch::dependencies::{Key, version};
use crate::watch::key;

/// The class and reason of the problem that ended a pass; `None` for success.
pub(super) type LastProblem = Option<(Class, &'static str)>;

/// State of all objects of a controller between two passes. Nothing here is needed after a restart.
pub struct Memory<O>(Mutex<State<O>>);

struct State<O> {
    slots: HashMap<Key, Slot<O>>,
    /// The objects that a pass applied although they were being deleted, and that no cleanup has followed. They are not in
    /// the slots, because a new object of the same name takes the slot and not the duty.
    late: HashMap<Key, Vec<Arc<O>>>,
}

struct Slot<O> {
    uid: Option<String>,
    /// Number of consecutive failures, and their generation: a new spec starts from zero.
    failures: u32,
    generation: Option<i64>,
    /// The version in the cache.
    seen: Option<u64>,
    /// The object as our own last write returned it, until it is in the cache.
    written: Option<Arc<O>>,
    /// Our finalizer is removed. If the removal deletes the object, there is no newer version to detect it by.
    released: bool,
    /// The result of the last pass.
    ended: LastProblem,
}

impl<O> Slot<O> {
    fn new(meta: &ObjectMeta, ended: LastProblem) -> Self {
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
        Self(Mutex::new(State {
            slots: HashMap::new(),
            late: HashMap::new(),
        }))
    }
}

impl<O: Object> Memory<O> {
    /// The newest known state: the cached one, or what our own write returned while the watch lags behind. Without this
    /// a pass right after a status write would use the previous status.
    ///
    /// The cache is read last, because it contains what is dropped here; an object that it does not contain is gone.
    pub fn newest(&self, key: &Key, cached: impl FnOnce() -> Option<Arc<O>>) -> Option<Arc<O>> {
        let written = self.0.lock().slots.get(key).and_then(|slot| slot.written.clone());
        let cached = cached()?;
        match written {
            Some(written) if is_newer(written.as_ref(), cached.as_ref()) => Some(written),
            _ => Some(cached),
        }
    }

    /// Keeps the result of our write until it is in the cache: this is not a second cache, and like the first it
    /// contains no managedFields.
    pub fn wrote(&self, object: &O) {
        self.slot(object.meta(), |slot| {
            slot.written = (version(object.meta()) > slot.seen).then(|| {
                let mut object = object.clone();
                object.meta_mut().managed_fields = None;
                Arc::new(object)
            });
        });
    }

    /// The cache contains this version.
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

    /// Records that our finalizer is removed from this object.
    pub fn released(&self, object: &O) {
        self.slot(object.meta(), |slot| slot.released = true);
        self.forget_late(object.meta());
    }

    /// Drops the late cleanup of this object: our finalizer is removed, or the object exists and is not being deleted; then
    /// its cleanup comes later, with the spec of that time.
    pub fn forget_late(&self, meta: &ObjectMeta) {
        let is_other = |late: &O| late.meta().uid != meta.uid;
        drop(self.0.lock().split_late(&key(meta), is_other));
    }

    /// Records that a pass applied although the object was being deleted: a cleanup has to follow.
    pub fn applied_late(&self, object: O) {
        let key = key(object.meta());
        let is_other = |late: &O| late.meta().uid != object.meta().uid;
        let mut memory = self.0.lock();
        drop(memory.split_late(&key, is_other));
        memory.late.entry(key).or_default().push(Arc::new(object));
    }

    /// Whether a pass applied although an object of this name was being deleted, and no cleanup has followed.
    pub fn needs_late_cleanup(&self, key: &Key) -> bool {
        self.0.lock().late.contains_key(key)
    }

    /// The objects that a pass applied although they were being deleted, without the one with this uid. The caller cleans
    /// up.
    pub fn take_late(&self, key: &Key, except: Option<&str>) -> Vec<Arc<O>> {
        let is_kept = |late: &O| except.is_some() && late.meta().uid.as_deref() == except;
        self.0.lock().split_late(key, is_kept)
    }

    /// Whether our finalizer is removed from this object.
    pub fn is_released(&self, object: &O) -> bool {
        self.slot(object.meta(), |slot| slot.released)
    }

    /// Counts a failure and returns the number of consecutive failures.
    pub fn failed(&self, object: &O) -> u32 {
        self.slot(object.meta(), |slot| {
            slot.failures = slot.failures.saturating_add(1);
            slot.failures
        })
    }

    /// Resets the counter.
    pub fn succeeded(&self, object: &O) {
        self.slot(object.meta(), |slot| slot.failures = 0);
    }

    /// Records the result of the pass and returns the previous one.
    pub fn ended(&self, object: &O, how: LastProblem) -> LastProblem {
        self.slot(object.meta(), |slot| std::mem::replace(&mut slot.ended, how))
    }

    /// Drops the state of a deleted object and returns the result of its last pass.
    pub fn forget(&self, key: &Key) -> LastProblem {
        self.0.lock().slots.remove(key).and_then(|slot| slot.ended)
    }

    fn slot<T>(&self, meta: &ObjectMeta, change: impl FnOnce(&mut Slot<O>) -> T) -> T {
        let mut memory = self.0.lock();
        let slot = memory
            .slots
            .entry(key(meta))
            .or_insert_with(|| Slot::new(meta, None));
        if slot.uid != meta.uid {
            // Another object with the same name. It takes the place of its predecessor in the gauges.
            *slot = Slot::new(meta, slot.ended);
        }
        if slot.generation != meta.generation {
            slot.generation = meta.generation;
            slot.failures = 0;
        }
        change(slot)
    }
}

impl<O> State<O> {
    /// Takes out the late objects of a name, except those to keep.
    fn split_late(&mut self, key: &Key, is_kept: impl Fn(&O) -> bool) -> Vec<Arc<O>> {
        let all = self.late.remove(key).unwrap_or_default();
        let (kept, taken): (Vec<_>, Vec<_>) = all.into_iter().partition(|late| is_kept(late));
        if !kept.is_empty() {
            self.late.insert(key.clone(), kept);
        }
        taken
    }
}

fn is_newer<O: Object>(ours: &O, cached: &O) -> bool {
    ours.meta().uid == cached.meta().uid && version(ours.meta()) > version(cached.meta())
}
