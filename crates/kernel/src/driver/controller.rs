//! One controller: its watch fills the queue, the queue starts the passes, and what it knows about its objects.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::core::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{Event, watcher};
use kube::{Client, Resource, ResourceExt};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;
use tracing::instrument::WithSubscriber;

use super::memory::Memory;
use super::queue::Queue;
use super::{Readiness, Settings, pass};
use crate::children::ChildCaches;
use crate::context::{Parent, ReconcileContext};
use crate::events::Recorder;
use crate::external::DiscoveryCache;
use crate::lease::Fence;
use crate::lenient::{Flaw, Lenient};
use crate::problem::{chain, guarded, log_panic};
use crate::reconciler::Reconciler;
use crate::scope::Scope;
use crate::telemetry::metrics::{ControllerMetrics, Queued};
use crate::watch::dependencies::{Dependencies, Key};
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
    /// Also tracks the passes, and the cancellations of their SQL statements, which outlive them.
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

    /// Follows an event of the objects themselves.
    fn route(&self, primary: &mut Primary<R>, event: &Event<Read<R>>) {
        match event {
            Event::Apply(object) => self.memory.saw(object.meta()),
            // The cache contains the listed objects only now.
            Event::InitDone => self
                .store
                .state()
                .iter()
                .for_each(|object| self.memory.saw(object.meta())),
            _ => {}
        }
        for change in primary.handle(event) {
            match change {
                PrimaryChange::Changed(key) => self.queue.wake(key),
                PrimaryChange::Gone(key) => self.forget_if_gone(&key),
            }
        }
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

    /// Drops the state of an object that is gone: after its deletion, and after a pass, which may have recorded something
    /// since. If a cleanup has to follow, the pass that does it ends here again.
    pub(super) fn forget_if_gone(&self, key: &Key) {
        if self.fingerprints.has(key) {
            return;
        }
        if self.memory.needs_late_cleanup(key) {
            self.queue.wake(key.clone());
            return;
        }
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
        if guarded(R::NAME, || router.route(&mut primary, &event)).is_some() {
            return;
        }
        // A pass reads the newest state, whatever the event was.
        let wake = |object: &Read<R>| router.queue.wake(key(object.meta()));
        match &event {
            Event::Apply(object) | Event::Delete(object) => wake(object),
            Event::InitDone => router.store.state().iter().for_each(|object| wake(object)),
            Event::Init | Event::InitApply(_) => {}
        }
    });
    let passes = async {
        // Without the cache of children, a pass would read each child.
        if shutdown.run_until_cancelled(caches_ready.wait()).await.is_none() {
            return;
        }
        let queue = shared.queue.clone();
        queue
            .serve(shutdown, |key, queued| run_pass(Arc::clone(&shared), key, queued))
            .await;
    };
    tokio::select! {
        biased;
        () = passes => {}
        () = listening => {}
        () = wake_on_external_events(&shared) => {}
    }
}

/// Wakes the objects that the controller names.
async fn wake_on_external_events<R: Reconciler>(shared: &Shared<R>) {
    loop {
        let events = AssertUnwindSafe(shared.reconciler.external_events());
        match events.catch_unwind().await {
            Ok(keys) => keys.into_iter().for_each(|key| shared.queue.wake(key)),
            Err(panic) => {
                log_panic("external events", panic.as_ref());
                // It may panic each time.
                sleep(shared.settings.backoff.most).await;
            }
        }
    }
}

/// One pass. It runs in its own task, so that passes use all cores; it is dropped with the controller, so that a lost
/// Lease stops it.
async fn run_pass<R: Reconciler>(shared: Arc<Shared<R>>, key: Key, queued: Queued) -> Option<Duration> {
    let backstop = shared.settings.backoff.most;
    let tasks = shared.fence.tasks().clone();
    let pass = pass::run(shared, key, queued).with_current_subscriber();
    match AbortOnDropHandle::new(tasks.spawn(pass)).await {
        Ok(requeue_after) => requeue_after,
        // Passes catch their own panics; an error here is a bug in the driver.
        Err(defect) => {
            error!(error = %chain(&defect), "a reconcile ended abnormally");
            Some(backstop)
        }
    }
}
