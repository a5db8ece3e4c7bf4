//! One controller: its watch feeds the queue, the queue feeds the passes.

use std::convert::Infallible;
use std::sync::Arc;

use futures::channel::mpsc;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{Event, watcher};
use kube::runtime::{WatchStreamExt, applier};
use kube::{Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::instrument::WithSubscriber;
use tracing::{debug, error};

use super::memory::Memory;
use super::queue::Queue;
use super::{Environment, Settings, Synced, pass};
use crate::context::{Place, Subject};
use crate::events::Recorder;
use crate::family::{Families, Setting};
use crate::foreign::Catalogue;
use crate::lease::Fence;
use crate::problem::chain;
use crate::reconciler::Reconciler;
use crate::scope::Scope;
use crate::telemetry::metrics::ControllerMetrics;
use crate::watch::attend;
use crate::watch::bells::Bells;
use crate::watch::primary::{Fingerprints, News, Primary};
use crate::watch::references::{Key, References};
use crate::watch::related::Subscriber;

/// An object that may not be readable as what it should be; the watch goes on either way.
pub(super) type Guarded<R> = DeserializeGuard<<R as Reconciler>::Object>;

/// Everything a pass needs that outlives it.
pub(super) struct Shared<R: Reconciler> {
    pub(super) reconciler: R,
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) metrics: ControllerMetrics,
    pub(super) recorder: Recorder,
    pub(super) queue: Queue,
    pub(super) references: Arc<References>,
    pub(super) families: Families,
    pub(super) bells: Bells,
    catalogue: Catalogue,
    pub(super) fingerprints: Fingerprints,
    pub(super) memory: Memory<R::Object>,
    store: Store<Guarded<R>>,
    pub(super) field_manager: String,
    pub(super) fence: Fence,
}

impl<R: Reconciler> Shared<R> {
    /// The object as it is now, which may be newer than when its pass was begun, or gone.
    pub(super) fn newest(&self, key: &Key) -> Option<Arc<R::Object>> {
        let cached = || {
            let cached = self.store.get(&reference::<R>(key))?;
            cached.0.clone().ok().map(Arc::new)
        };
        self.memory.newest(key, cached)
    }

    /// Where a pass over this object stands.
    pub(super) fn place(&self, object: &R::Object) -> Place {
        Place {
            client: self.client.clone(),
            subject: Subject::of(object),
            references: Arc::clone(&self.references),
            families: self.families.clone(),
            bells: self.bells.clone(),
            catalogue: self.catalogue.clone(),
        }
    }

    /// A pass may end after its object has: what it noted then would be kept for ever.
    pub(super) fn forget_if_gone(&self, key: &Key) {
        if !self.fingerprints.has(key) {
            self.forget(key);
        }
    }

    fn forget(&self, key: &Key) {
        let ended = self.memory.forget(key);
        self.metrics.moved(ended.map(|(class, _)| class.as_str()), None);
        self.references.forget(key);
        self.queue.forget(key);
    }
}

fn reference<R: Reconciler>(key: &Key) -> ObjectRef<Guarded<R>> {
    ObjectRef::new(&key.name).within(&key.namespace)
}

/// A controller that is not running yet, and how watches of other kinds reach it.
pub(super) fn new<R: Reconciler>(
    reconciler: R,
    scope: &Scope,
    environment: &Environment,
    synced: &Synced,
    bells: &Bells,
    fence: Fence,
) -> (impl Future<Output = ()> + Send + use<R>, Subscriber) {
    let Environment {
        client,
        metrics,
        instance,
        settings,
        shutdown,
    } = environment.clone();
    let metrics = metrics.controller(R::NAME);
    metrics.set_max_concurrent(settings.concurrency.into());
    let (queue, requests) = Queue::new(metrics.clone());
    let (store, writer) = reflector::store();
    let field_manager = format!("stanchion-{}", R::NAME);
    let owner = (
        R::Object::group(&()).into_owned(),
        R::Object::kind(&()).into_owned(),
    );
    let waking = queue.clone();
    let wake: Arc<dyn Fn(Key) + Send + Sync> = Arc::new(move |key| waking.wake(key));
    let known = Synced::default();
    let (families, watches) = R::families().open(&Setting {
        client: &client,
        scope,
        config: settings.watcher(),
        synced: &[&known, synced],
        owner: owner.clone(),
        manager: &field_manager,
        wake: Arc::clone(&wake),
    });
    let shared = Arc::new(Shared {
        reconciler,
        recorder: Recorder::new(client.clone(), format!("stanchion/{}", R::NAME), &instance),
        client,
        settings,
        metrics,
        queue,
        references: Arc::default(),
        families,
        bells: bells.clone(),
        catalogue: Catalogue::default(),
        fingerprints: Fingerprints::default(),
        memory: Memory::default(),
        store,
        field_manager,
        fence,
    });
    let subscriber = Subscriber {
        owner,
        references: Arc::clone(&shared.references),
        wake,
    };
    bells.hang::<R::Object>(Arc::clone(&subscriber.wake));
    let listed = synced.expect(&format!("list of {} in {scope}", R::Object::plural(&())));
    let passes = run(shared, writer, requests, scope.clone(), listed, known, shutdown);
    let controller = async move {
        tokio::select! {
            () = passes => {}
            () = endless(watches) => {}
        }
    };
    (controller, subscriber)
}

/// Runs watches that never end, and does not end where there are none.
async fn endless(watches: Vec<BoxFuture<'static, ()>>) {
    join_all(watches).await;
    std::future::pending::<()>().await;
}

async fn run<R: Reconciler>(
    shared: Arc<Shared<R>>,
    writer: Writer<Guarded<R>>,
    requests: mpsc::UnboundedReceiver<Key>,
    scope: Scope,
    listed: impl Fn(Option<String>),
    families: Synced,
    shutdown: CancellationToken,
) {
    let store = shared.store.clone();
    let events = watcher(scope.api::<Guarded<R>>(&shared.client), shared.settings.watcher())
        .default_backoff()
        // Four fifths of a small object are managedFields, and nobody here reads them.
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer);
    let mut primary = Primary::<R>::new(shared.fingerprints.clone());
    let hearing = Arc::clone(&shared);
    let listening = attend(R::NAME, events, listed, move |event| {
        match &event {
            Event::Apply(object) => hearing.memory.saw(object.meta()),
            // Only now the cache has what was listed.
            Event::InitDone => hearing
                .store
                .state()
                .iter()
                .for_each(|object| hearing.memory.saw(object.meta())),
            _ => {}
        }
        for news in primary.hear(&event) {
            match news {
                News::Changed(key) => hearing.queue.wake(key),
                News::Gone(key) => hearing.forget(&key),
            }
        }
    });
    let waiting = shared.queue.clone();
    let backstop = shared.settings.backoff.most;
    let config = controller::Config::default().concurrency(shared.settings.concurrency);
    // A pass that does not know its object's children yet would ask for each of them.
    let requests = async move {
        families.wait().await;
        requests
    }
    .flatten_stream()
    .map(|key| Ok::<_, Infallible>(reference::<R>(&key)))
    .take_until(shutdown.cancelled_owned());
    let passes = applier(
        // A task of its own, so that passes use all cores; dropped with the controller, so that a lost
        // lease stops them in the middle.
        |object, shared| {
            AbortOnDropHandle::new(tokio::spawn(pass::run(shared, object).with_current_subscriber()))
        },
        // Passes guard themselves; what arrives here is a defect of the driver.
        move |_, defect, _| {
            error!(error = %chain(defect), "a reconcile ended abnormally");
            Action::requeue(backstop)
        },
        shared,
        store,
        requests,
        config,
    )
    .for_each(|ended| {
        match ended {
            // Deleted while it waited, or woken by an orphan's end: it waits no longer.
            Err(controller::Error::ObjectNotFound(gone)) => waiting.forget(&Key {
                namespace: gone.namespace.unwrap_or_default(),
                name: gone.name,
            }),
            Err(error) => debug!(error = %chain(&error), "not reconciled"),
            Ok(_) => {}
        }
        std::future::ready(())
    });
    tokio::select! {
        () = passes => {}
        () = listening => {}
    }
}
