//! One controller: its watch fills the queue, the queue starts the passes, and what it knows about its objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::core::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{Event, watcher};
use kube::{Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;
use tracing::instrument::WithSubscriber;

use super::queue::Queue;
use super::{Readiness, Settings, pass};
use crate::children::ChildCaches;
use crate::context::{Parent, ReconcileContext};
use crate::events::Recorder;
use crate::external::DiscoveryCache;
use crate::lease::Fence;
use crate::lenient::{Flaw, Lenient};
use crate::problem::{Class, chain};
use crate::reconciler::{Object, Reconciler};
use crate::scope::Scope;
use crate::telemetry::metrics::{ControllerMetrics, Queued};
use crate::watch::dependencies::{Dependencies, Key, version};
use crate::watch::enqueue::Enqueuers;
use crate::watch::{Fingerprints, Primary, PrimaryChange, backoff, key, run_watch};

/// An object that may be malformed; the watch continues in any case.
pub(super) type Read<R> = Lenient<<R as Reconciler>::Object>;

/// The newest known state of an object.
pub(super) enum Newest<R: Reconciler> {
    /// The object, without its malformed fields.
    Object(Arc<R::Object>, Vec<Flaw>),
    /// Only the metadata of the object can be read.
    Unreadable(Arc<Read<R>>),
}

impl<R: Reconciler> Newest<R> {
    pub(super) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Object(object, _) => object.meta(),
            Self::Unreadable(object) => object.meta(),
        }
    }
}

/// The state that passes share.
pub(super) struct Shared<R: Reconciler> {
    pub(super) reconciler: R,
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) metrics: ControllerMetrics,
    pub(super) recorder: Recorder,
    pub(super) queue: Queue,
    pub(super) dependencies: Arc<Dependencies>,
    pub(super) child_caches: ChildCaches,
    pub(super) enqueuers: Enqueuers,
    pub(super) discovery: DiscoveryCache,
    pub(super) fingerprints: Fingerprints,
    pub(super) memory: Memory<R::Object>,
    pub(super) store: Store<Read<R>>,
    pub(super) field_manager: String,
    pub(super) fence: Fence,
}

impl<R: Reconciler> Shared<R> {
    /// The newest known state of the object, which may be newer than when its pass was enqueued, or gone.
    pub(super) fn newest(&self, key: &Key) -> Option<Newest<R>> {
        let mut read = None;
        let cached = || {
            read = self.store.get(&reference::<R>(key));
            let object = read.as_ref()?.object()?;
            Some(Arc::new(object.clone()))
        };
        let newest = self.memory.newest(key, cached);
        let read = read?;
        let Some(object) = newest else {
            return Some(Newest::Unreadable(read));
        };
        // An object from our own write is never malformed, or it would not have been kept.
        let is_cached = object.meta().resource_version == read.meta().resource_version;
        let flaws = if is_cached { read.flaws() } else { &[] };
        Some(Newest::Object(object, flaws.to_vec()))
    }

    /// The context of a pass over this object.
    pub(super) fn context(&self, object: &R::Object) -> ReconcileContext {
        ReconcileContext {
            client: self.client.clone(),
            parent: Parent::of(object),
            dependencies: Arc::clone(&self.dependencies),
            child_caches: self.child_caches.clone(),
            enqueuers: self.enqueuers.clone(),
            discovery: self.discovery.clone(),
        }
    }

    /// A pass may end after its object is gone: what it recorded then would be kept forever.
    pub(super) fn forget_if_gone(&self, key: &Key) {
        if self.fingerprints.has(key) {
            return;
        }
        if self.memory.needs_late_cleanup(key) {
            self.queue.wake(key.clone());
        } else {
            self.forget(key);
        }
    }

    fn forget(&self, key: &Key) {
        let ended = self.memory.forget(key);
        self.metrics.moved(ended.map(|(class, _)| class.as_str()), None);
        self.dependencies.forget(key);
        self.queue.forget(key);
    }
}

pub(super) fn reference<R: Reconciler>(key: &Key) -> ObjectRef<Read<R>> {
    ObjectRef::new(&key.name).within(&key.namespace)
}

pub(super) async fn run<R: Reconciler>(
    shared: Arc<Shared<R>>,
    writer: Writer<Read<R>>,
    scope: Scope,
    listed: impl Fn(Option<String>),
    caches_ready: Readiness,
    shutdown: CancellationToken,
) {
    let events = watcher(scope.api::<Read<R>>(&shared.client), shared.settings.watcher())
        .backoff(backoff())
        // Four fifths of a small object are managedFields, and nothing here reads them.
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer);
    let mut primary = Primary::<R>::new(shared.fingerprints.clone());
    let router = Arc::clone(&shared);
    let listening = run_watch(R::NAME, events, listed, move |event| {
        match &event {
            Event::Apply(object) => router.memory.saw(object.meta()),
            // The cache contains the listed objects only now.
            Event::InitDone => router
                .store
                .state()
                .iter()
                .for_each(|object| router.memory.saw(object.meta())),
            _ => {}
        }
        for change in primary.handle(&event) {
            match change {
                PrimaryChange::Changed(key) => router.queue.wake(key),
                // Its state is needed once more, and dropped after that.
                PrimaryChange::Gone(key) if router.memory.needs_late_cleanup(&key) => router.queue.wake(key),
                PrimaryChange::Gone(key) => router.forget(&key),
            }
        }
    });
    let passes = async {
        // Without the cache of children, a pass would read each child.
        caches_ready.wait().await;
        let queue = shared.queue.clone();
        queue
            .serve(shutdown, |key, queued| turn(Arc::clone(&shared), key, queued))
            .await;
    };
    tokio::select! {
        biased;
        () = passes => {}
        () = listening => {}
        () = heed(&shared) => {}
    }
}

/// Wakes the objects that the controller names.
async fn heed<R: Reconciler>(shared: &Shared<R>) {
    loop {
        for key in shared.reconciler.external_events().await {
            shared.queue.wake(key);
        }
    }
}

/// One pass. It runs in its own task, so that passes use all cores; it is dropped with the controller, so that a lost
/// Lease stops it.
async fn turn<R: Reconciler>(shared: Arc<Shared<R>>, key: Key, queued: Queued) -> Option<Duration> {
    let backstop = shared.settings.backoff.most;
    let pass = pass::run(shared, key, queued).with_current_subscriber();
    match AbortOnDropHandle::new(tokio::spawn(pass)).await {
        Ok(requeue_after) => requeue_after,
        // Passes catch their own panics; an error here is a bug in the driver.
        Err(defect) => {
            error!(error = %chain(&defect), "a reconcile ended abnormally");
            Some(backstop)
        }
    }
}

/// The class and reason of the problem that ended a pass; `None` for success.
pub(super) type LastProblem = Option<(Class, &'static str)>;

/// State of all objects of a controller between two passes. Nothing here is needed after a restart.
pub struct Memory<O>(Mutex<HashMap<Key, Slot<O>>>);

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
    /// The object as a pass wrote it that had begun before the object was deleted, and applied after that.
    applied_late: Option<Arc<O>>,
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
            applied_late: None,
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
    /// The newest known state: the cached one, or what our own write returned while the watch lags behind. Without this
    /// a pass right after a status write would use the previous status.
    ///
    /// The cache is read last, because it contains what is dropped here; an object that it does not contain is gone.
    pub fn newest(&self, key: &Key, cached: impl FnOnce() -> Option<Arc<O>>) -> Option<Arc<O>> {
        let written = self.lock().get(key).and_then(|slot| slot.written.clone());
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
        self.slot(object.meta(), |slot| {
            slot.released = true;
            slot.applied_late = None;
        });
    }

    /// Records that a pass applied although the object was being deleted: a cleanup has to follow.
    pub fn applied_late(&self, object: O) {
        let meta = object.meta().clone();
        self.slot(&meta, |slot| slot.applied_late = Some(Arc::new(object)));
    }

    /// Whether a pass applied although the object was being deleted, and no cleanup has followed.
    pub fn needs_late_cleanup(&self, key: &Key) -> bool {
        let memory = self.lock();
        memory.get(key).is_some_and(|slot| slot.applied_late.is_some())
    }

    /// The object that a pass applied although it was being deleted. The caller cleans up.
    pub fn take_late(&self, key: &Key) -> Option<Arc<O>> {
        self.lock().get_mut(key)?.applied_late.take()
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
        self.lock().remove(key).and_then(|slot| slot.ended)
    }

    fn slot<T>(&self, meta: &ObjectMeta, change: impl FnOnce(&mut Slot<O>) -> T) -> T {
        let mut memory = self.lock();
        let slot = memory.entry(key(meta)).or_insert_with(|| Slot::new(meta, None));
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Slot<O>>> {
        self.0.lock()
    }
}

fn is_newer<O: Object>(ours: &O, cached: &O) -> bool {
    ours.meta().uid == cached.meta().uid && version(ours.meta()) > version(cached.meta())
}
