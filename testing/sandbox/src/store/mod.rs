//! The objects in memory: one revision counter for all kinds, and a log of changes for each kind. Watches are cursors
//! into the logs, so an event can be neither missed nor reordered. A list at an older revision is the current state
//! with the newer changes undone.

mod disk;
mod log;
mod object;
mod watch;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use log::in_namespace;
pub(crate) use object::{Object, metadata_only, text};
pub(crate) use watch::{Cursor, Feed};

/// Number of changes that the log of a kind keeps, unless the caller asks for another.
pub(crate) const HISTORY: usize = 20_000;

/// A change with its kind.
pub(crate) type KindChange = (Arc<str>, Change);

/// One committed write.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Arc<str>,
    /// The state before, if the object existed.
    pub(crate) before: Option<Arc<Object>>,
    /// The state after; for a deletion the last state, with the revision of the deletion.
    pub(crate) after: Arc<Object>,
    pub(crate) deleted: bool,
}

#[derive(Debug, Default)]
struct Kind {
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    log: VecDeque<Change>,
    /// Changes up to this revision have been dropped.
    compacted: u64,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    /// Number of changes that each log keeps.
    history: usize,
    /// No changes of any kind are known before this revision.
    floor: u64,
    kinds: HashMap<Arc<str>, Kind>,
    /// The changes of all kinds, for the controllers.
    feed: VecDeque<KindChange>,
    /// The file that persists changes, if there is one.
    journal: Option<disk::Journal>,
}

/// The requested revision is no longer, or not yet, known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutOfRange {
    Compacted,
    Future { current: u64 },
}

/// Another writer was faster; contains the current state.
#[derive(Debug)]
pub(crate) struct Stale;

/// The state that a write expects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    Absent,
    Revision(u64),
}

#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    /// Counts watches and controllers.
    tick: tokio::sync::watch::Sender<u64>,
    /// Wakes readers in the order in which they began to wait. A watch channel wakes them in a random order.
    news: tokio::sync::Notify,
}

/// The objects of a list and its revision.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<(Arc<str>, Arc<Object>)>,
}

/// The key of an object within its kind; sorts like the original's storage.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

impl Store {
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self::with_history(HISTORY)
    }

    pub(crate) fn with_history(history: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                revision: 1,
                history,
                floor: 0,
                kinds: HashMap::new(),
                feed: VecDeque::new(),
                journal: None,
            }),
            tick: tokio::sync::watch::Sender::new(1),
            news: tokio::sync::Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Ends at the next change.
    pub(crate) fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.news.notified()
    }

    /// Counts a reader.
    pub(crate) fn reader(&self) -> tokio::sync::watch::Receiver<u64> {
        self.tick.subscribe()
    }

    /// The number of subscribers.
    pub(crate) fn watches(&self) -> u32 {
        u32::try_from(self.tick.receiver_count()).unwrap_or(u32::MAX)
    }

    pub(crate) fn get(&self, storage: &str, key: &str) -> Option<Arc<Object>> {
        self.lock().kinds.get(storage)?.objects.get(key).cloned()
    }

    /// The current state of a kind, in one namespace or in all.
    pub(crate) fn list(&self, storage: &str, namespace: Option<&str>) -> Snapshot {
        let inner = self.lock();
        let objects = inner
            .kinds
            .get(storage)
            .map(|kind| kind.select(namespace))
            .unwrap_or_default();
        Snapshot {
            revision: inner.revision,
            objects,
        }
    }

    /// The state of a kind as it was at `revision`.
    pub(crate) fn list_at(
        &self,
        storage: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Snapshot, OutOfRange> {
        let inner = self.lock();
        if revision > inner.revision {
            return Err(OutOfRange::Future {
                current: inner.revision,
            });
        }
        if revision < inner.floor {
            return Err(OutOfRange::Compacted);
        }
        let Some(kind) = inner.kinds.get(storage) else {
            return Ok(Snapshot {
                revision,
                objects: Vec::new(),
            });
        };
        if revision < kind.compacted {
            return Err(OutOfRange::Compacted);
        }
        let mut objects: BTreeMap<_, _> = kind.select(namespace).into_iter().collect();
        let within = |key: &str| namespace.is_none_or(|namespace| in_namespace(key, namespace));
        for change in kind
            .log
            .iter()
            .rev()
            .take_while(|change| change.revision > revision)
        {
            if !within(&change.key) {
                continue;
            }
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Ok(Snapshot {
            revision,
            objects: objects.into_iter().collect(),
        })
    }

    /// Commits a new state. The object has the new revision.
    pub(crate) fn put(
        &self,
        storage: &Arc<str>,
        key: &str,
        expect: Expect,
        value: Value,
    ) -> Result<Arc<Object>, Stale> {
        let mut inner = self.lock();
        let before = inner
            .kinds
            .get(storage)
            .and_then(|kind| kind.objects.get(key))
            .cloned();
        match (expect, &before) {
            (Expect::Absent, None) => {}
            (Expect::Revision(revision), Some(before)) if before.revision() == revision => {}
            _ => return Err(Stale),
        }
        let revision = inner.next();
        let after = Arc::new(Object::new(value, revision));
        inner.record(storage, key, before, after.clone(), false);
        drop(inner);
        self.tick.send_replace(revision);
        self.news.notify_waiters();
        Ok(after)
    }

    /// Removes an object; the returned state has the revision of the removal.
    pub(crate) fn remove(&self, storage: &Arc<str>, key: &str, revision: u64) -> Result<Arc<Object>, Stale> {
        let mut inner = self.lock();
        let before = inner
            .kinds
            .get(storage)
            .and_then(|kind| kind.objects.get(key))
            .cloned();
        let before = before
            .filter(|before| before.revision() == revision)
            .ok_or(Stale)?;
        let revision = inner.next();
        let last = Arc::new(Object::new(before.value().clone(), revision));
        inner.record(storage, key, Some(before), last.clone(), true);
        drop(inner);
        self.tick.send_replace(revision);
        self.news.notify_waiters();
        Ok(last)
    }

    /// Drops all changes so far: a watch that has not seen them gets 410.
    pub(crate) fn compact(&self) {
        let mut inner = self.lock();
        let revision = inner.revision;
        inner.floor = revision;
        for kind in inner.kinds.values_mut() {
            kind.log.clear();
            kind.compacted = revision;
        }
    }

    /// The kinds that have objects, in a fixed order, so that a simulated run depends on its seed alone.
    pub(crate) fn storages(&self) -> Vec<Arc<str>> {
        let inner = self.lock();
        let kinds = inner.kinds.iter().filter(|(_, kind)| !kind.objects.is_empty());
        let mut names: Vec<Arc<str>> = kinds.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Changes of a kind after `revision`, oldest first, and the revision that they lead to.
    fn changes(&self, storage: &str, revision: u64) -> Result<(Vec<Change>, u64), OutOfRange> {
        let inner = self.lock();
        if revision < inner.floor {
            return Err(OutOfRange::Compacted);
        }
        let Some(kind) = inner.kinds.get(storage) else {
            return Ok((Vec::new(), inner.revision));
        };
        if revision < kind.compacted {
            return Err(OutOfRange::Compacted);
        }
        let first = kind.log.partition_point(|change| change.revision <= revision);
        Ok((
            kind.log.range(first..).cloned().collect(),
            inner.revision.max(revision),
        ))
    }

    /// Changes of all kinds after `revision`; `None` if some of them have been dropped.
    fn all_changes(&self, revision: u64) -> Option<(Vec<KindChange>, u64)> {
        let inner = self.lock();
        let first = inner
            .feed
            .partition_point(|(_, change)| change.revision <= revision);
        let forgotten = first == 0
            && inner.feed.len() == inner.history
            && inner
                .feed
                .front()
                .is_some_and(|(_, change)| change.revision > revision + 1);
        (!forgotten).then(|| (inner.feed.range(first..).cloned().collect(), inner.revision))
    }
}

#[cfg(test)]
mod tests;
