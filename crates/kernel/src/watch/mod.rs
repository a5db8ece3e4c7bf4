//! What enqueues an object: its own change, and a change of what it owns or refers to.
//!
//! Here: how a watch is run, and whether a change of the object itself matters. The watch reports every write, including our
//! own status writes. An object needs a reconcile when its generation, its deletion timestamp, our finalizer or an
//! annotation that we honour changed; anything else would make the operator trigger itself.
//!
//! [`dependencies`]: which objects have read a Secret. [`related`]: the watches of other kinds, as metadata and without a
//! cache, shared by all controllers. [`enqueue`]: enqueues other objects from a pass.

pub mod dependencies;
pub mod enqueue;
pub mod related;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::Resource;
use kube::core::ObjectMeta;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use tokio::time::timeout;
use tracing::warn;

use self::dependencies::{Key, version};
pub use self::related::{MANAGED_BY, Watch};
use crate::problem::{chain, guarded};
use crate::reconciler::{Reconciler, finalizer};

/// The backoff of broken watches. The delays stay short: they limit how long a change goes unnoticed after the API
/// server is back. A watch that keeps breaking is not opened faster and faster.
pub(crate) fn backoff() -> ResetTimerBackoff<Pauses> {
    ResetTimerBackoff::new(Pauses(SHORTEST_PAUSE), Duration::from_mins(1))
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Delays that double up to a limit, each with up to half of it in addition, so that watches which broke together do
/// not reconnect together.
pub(crate) struct Pauses(Duration);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0;
        self.0 = pause.saturating_mul(2).min(LONGEST_PAUSE);
        Some(pause + pause.mul_f64(crate::ambient::fraction() / 2.0))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = SHORTEST_PAUSE;
    }
}

/// Longer than the longest pause between two attempts (7.5 s) and an attempt that hangs (30 s).
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(50);

/// The state of the watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A list is needed or running; only its end helps.
    Listing,
    /// Everything was received, and every change will be.
    Running,
    /// Everything was received, but changes may be late.
    Interrupted,
}

/// Runs a watch forever. Passes every event to `handle`, and calls `synced` with the current error, or with `None`: it
/// reports to `/readyz` whether the watch works.
///
/// kube resumes a broken watch where it stopped, without a new list, and does not report it: a quiet kind has no events
/// that would show it. But while it cannot resume, it returns an error at least once in [`RECOVERY_TIMEOUT`]. So no
/// error for that long means that the watch works again.
///
/// A panic in `handle` must not end the watch of all other objects: it is logged, and the next event follows.
pub(crate) async fn run_watch<K>(
    name: &str,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    synced: impl Fn(Option<String>),
    mut handle: impl FnMut(Event<K>),
) {
    let mut events = std::pin::pin!(events);
    let mut state = State::Listing;
    loop {
        let recovery_timeout = if state == State::Interrupted {
            RECOVERY_TIMEOUT
        } else {
            Duration::MAX
        };
        match timeout(recovery_timeout, events.next()).await {
            Ok(None) => return,
            Ok(Some(Err(error))) => {
                let why = chain(&error);
                warn!(watch = name, error = why, "watch interrupted");
                synced(Some(why));
                if state == State::Running {
                    state = State::Interrupted;
                }
            }
            Ok(Some(Ok(event))) => {
                let next = match &event {
                    Event::Init | Event::InitApply(_) => State::Listing,
                    Event::InitDone | Event::Apply(_) | Event::Delete(_) => State::Running,
                };
                guarded(name, || handle(event));
                if next == State::Running && state != State::Running {
                    synced(None);
                }
                state = next;
            }
            Err(_) => {
                synced(None);
                state = State::Running;
            }
        }
    }
}

/// The result of an event of the primary watch.
#[derive(Debug, PartialEq, Eq)]
pub enum PrimaryChange {
    /// Reconcile this object.
    Changed(Key),
    /// This object was deleted.
    Gone(Key),
}

/// The fingerprint of every object: the fields whose change causes a reconcile.
#[derive(Clone, Default)]
pub struct Fingerprints(Arc<Mutex<HashMap<Key, Recorded>>>);

struct Recorded {
    version: Option<u64>,
    fingerprint: u64,
}

impl Recorded {
    fn of<R: Reconciler>(meta: &ObjectMeta) -> Self {
        Self {
            version: version(meta),
            fingerprint: fingerprint::<R>(meta),
        }
    }
}

impl Fingerprints {
    /// Records an object that we have written ourselves, so that the event of the write wakes nothing. Also called
    /// before the write, with the same version: the watch may be faster than the response. If the watch is ahead, its
    /// state is newer and stays.
    pub fn expect<R: Reconciler>(&self, meta: &ObjectMeta) {
        if let Some(recorded) = self.0.lock().get_mut(&key(meta))
            && recorded.version <= version(meta)
        {
            *recorded = Recorded::of::<R>(meta);
        }
    }

    /// Whether the object exists, according to the watch.
    pub fn has(&self, key: &Key) -> bool {
        self.0.lock().contains_key(key)
    }

    /// Records a state from the watch. Returns whether it needs a reconcile.
    fn changed(&self, key: &Key, now: Recorded) -> bool {
        let mut known = self.0.lock();
        let changed = known
            .get(key)
            .is_none_or(|before| before.fingerprint != now.fingerprint);
        known.insert(key.clone(), now);
        changed
    }

    /// Records a complete list: what changed in it, and what it no longer contains.
    ///
    /// If our own write is newer than the list, the list is outdated: the watch that follows reports the rest.
    fn relisted(&self, listed: BTreeMap<Key, Recorded>) -> Vec<PrimaryChange> {
        let gone: Vec<Key> = {
            let mut known = self.0.lock();
            let gone = known.keys().filter(|key| !listed.contains_key(*key)).cloned();
            let mut gone: Vec<Key> = gone.collect();
            // In a fixed order, so that a simulated run depends on its seed alone. A list is in order already.
            gone.sort_unstable();
            known.retain(|key, _| listed.contains_key(key));
            gone
        };
        let is_outrun = |key: &Key, recorded: &Recorded| {
            let known = self.0.lock();
            known
                .get(key)
                .is_some_and(|known| known.version > recorded.version)
        };
        let changed = listed.into_iter().filter_map(|(key, recorded)| {
            (!is_outrun(&key, &recorded) && self.changed(&key, recorded)).then_some(key)
        });
        let changed: Vec<PrimaryChange> = changed.map(PrimaryChange::Changed).collect();
        gone.into_iter().map(PrimaryChange::Gone).chain(changed).collect()
    }
}

/// The object's namespace and name as a key.
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
    finalizer::<R>()
        .map(|ours| finalizers.filter(|entry| *entry == ours).count())
        .hash(&mut hasher);
    let annotation = |name| meta.annotations.as_ref().and_then(|all| all.get(name));
    for name in R::ANNOTATIONS {
        annotation(*name).hash(&mut hasher);
    }
    hasher.finish()
}

/// Converts the events of the primary watch.
///
/// The cache that passes read changes only when a list is complete. So a list has no effect before its end: a pass that
/// began earlier would read the old object, and nothing would wake it again.
pub struct Primary<R: Reconciler> {
    fingerprints: Fingerprints,
    /// The objects of the current list; an object that is missing at its end was deleted unnoticed.
    listing: BTreeMap<Key, Recorded>,
    reconciler: std::marker::PhantomData<R>,
}

impl<R: Reconciler> Primary<R> {
    /// Starts without any known object.
    pub fn new(fingerprints: Fingerprints) -> Self {
        Self {
            fingerprints,
            listing: BTreeMap::new(),
            reconciler: std::marker::PhantomData,
        }
    }

    /// The changes in one event.
    pub fn handle<K: Resource>(&mut self, event: &Event<K>) -> Vec<PrimaryChange> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let meta = object.meta();
                self.listing.insert(key(meta), Recorded::of::<R>(meta));
                Vec::new()
            }
            Event::InitDone => self.fingerprints.relisted(std::mem::take(&mut self.listing)),
            Event::Apply(object) => {
                let meta = object.meta();
                let key = key(meta);
                let changed = self.fingerprints.changed(&key, Recorded::of::<R>(meta));
                changed
                    .then_some(PrimaryChange::Changed(key))
                    .into_iter()
                    .collect()
            }
            Event::Delete(object) => {
                let key = key(object.meta());
                self.fingerprints.0.lock().remove(&key);
                vec![PrimaryChange::Gone(key)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[tokio::test]
    async fn a_handler_that_panics_does_not_end_the_watch() {
        let named = |name: &str| {
            let mut object = ConfigMap::default();
            object.metadata.name = Some(name.to_owned());
            Ok(Event::Apply(object))
        };
        let events = futures::stream::iter([named("one"), named("bad"), named("two")]);
        let (synced, mut handled) = (Mutex::new(Vec::new()), Vec::new());
        let note = |error| synced.lock().push(error);
        run_watch("a watch", events, note, |event| {
            let Event::Apply(object) = event else { return };
            let name = object.metadata.name.unwrap_or_default();
            assert_ne!(name, "bad");
            handled.push(name);
        })
        .await;
        assert_eq!(handled, ["one", "two"]);
        assert_eq!(*synced.lock(), [None::<String>], "the watch works");
    }
}
