//! The driver: runs a [`Reconciler`] over the objects of a scope.
//!
//! One object never runs twice at once and at most [`Settings::concurrency`] run together (kube's
//! `applier` sees to both); a deadline and a panic guard stand around every pass ([`pass`]); what wakes
//! an object is in [`crate::watch`]; when it is looked at again is in [`backoff`].

pub mod backoff;
pub mod memory;
mod pass;
mod synced;

use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::{FutureExt, Stream, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, applier};
use kube::{Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, warn};

pub use self::backoff::Backoff;
pub use self::synced::Synced;

use self::memory::Memory;
use crate::problem::chain;
use crate::reconciler::Reconciler;
use crate::scope::Scope;
use crate::watch::primary::{Fingerprints, News, Primary};
use crate::watch::references::{Key, References};
use crate::watch::related::{Related, Subscriber};

/// How a controller is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many objects are reconciled together.
    pub concurrency: u16,
    /// How long one pass may take.
    pub deadline: Duration,
    /// How transient problems are retried.
    pub backoff: Backoff,
    /// Whether the API server streams lists (1.34 and newer): the cheapest way to start.
    pub streaming_lists: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            deadline: Duration::from_secs(60),
            backoff: Backoff::default(),
            streaming_lists: false,
        }
    }
}

impl Settings {
    fn watcher(&self) -> watcher::Config {
        let config = watcher::Config::default();
        if self.streaming_lists { config.streaming_lists() } else { config.page_size(50) }
    }
}

type Guarded<R> = DeserializeGuard<<R as Reconciler>::Object>;
type Queue<R> = mpsc::UnboundedSender<ObjectRef<Guarded<R>>>;

/// Everything a pass needs that outlives it.
struct Shared<R: Reconciler> {
    reconciler: R,
    client: Client,
    settings: Settings,
    references: Arc<References>,
    fingerprints: Fingerprints,
    memory: Memory<R::Object>,
    field_manager: String,
}

/// Several controllers, the watches that they share, and what they wait for before they are ready.
pub struct Operator {
    client: Client,
    settings: Settings,
    related: Related,
    synced: Synced,
    shutdown: CancellationToken,
    controllers: Vec<futures::future::BoxFuture<'static, ()>>,
}

impl Operator {
    /// An operator without controllers. `shutdown` lets running passes finish and starts no others.
    pub fn new(client: Client, settings: Settings, shutdown: CancellationToken) -> Self {
        Self {
            client,
            settings,
            related: Related::default(),
            synced: Synced::default(),
            shutdown,
            controllers: Vec::new(),
        }
    }

    /// What is waited for before the operator is ready.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Adds a controller for one scope.
    pub fn add<R: Reconciler>(&mut self, reconciler: R, scope: &Scope) {
        let (queue, requests) = mpsc::unbounded();
        let shared = Arc::new(Shared {
            reconciler,
            client: self.client.clone(),
            settings: self.settings.clone(),
            references: Arc::default(),
            fingerprints: Fingerprints::default(),
            memory: Memory::default(),
            field_manager: format!("stanchion-{}", R::NAME),
        });
        let waker = queue.clone();
        let subscriber = Subscriber {
            owner: (R::Object::group(&()).into(), R::Object::kind(&()).into()),
            references: Arc::clone(&shared.references),
            // A closed queue means that the controller has stopped: nobody is left to wake.
            wake: Arc::new(move |key| drop(waker.unbounded_send(object_ref::<R>(&key)))),
        };
        self.related.subscribe(R::watches(), scope, &subscriber);
        let name = format!("list of {} in {scope}", R::Object::plural(&()));
        let listed = self.synced.expect(&name);
        self.controllers
            .push(run(shared, queue, requests, scope.clone(), listed, self.shutdown.clone()).boxed());
    }

    /// Runs until shutdown, and until what was running then has finished. Dropping the future stops
    /// everything at once.
    pub async fn run(self) {
        let watches = self.related.into_futures(&self.client, &self.settings.watcher(), &self.synced);
        let watches = async {
            futures::future::join_all(watches).await;
            // Without any watch there is nothing to wait for here; the controllers decide when to end.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = futures::future::join_all(self.controllers) => {}
            () = watches => {}
        }
    }
}

fn object_ref<R: Reconciler>(key: &Key) -> ObjectRef<Guarded<R>> {
    ObjectRef::new(&key.name).within(&key.namespace)
}

/// One controller: its watch feeds the queue, the queue feeds the passes.
async fn run<R: Reconciler>(
    shared: Arc<Shared<R>>,
    queue: Queue<R>,
    requests: mpsc::UnboundedReceiver<ObjectRef<Guarded<R>>>,
    scope: Scope,
    listed: impl Fn(Option<String>),
    shutdown: CancellationToken,
) {
    let (store, writer) = reflector::store();
    let events = watcher(scope.api::<Guarded<R>>(&shared.client), shared.settings.watcher())
        .default_backoff()
        // Four fifths of a small object are managedFields, and nobody here reads them.
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer);
    let listening = listen(Arc::clone(&shared), queue, events, listed);
    let backstop = shared.settings.backoff.most;
    let config = controller::Config::default().concurrency(shared.settings.concurrency);
    let passes = applier(
        // A task of its own, so that passes use all cores; dropped with the controller, so that a lost
        // lease stops them in the middle.
        |object, shared| AbortOnDropHandle::new(tokio::spawn(pass::run(shared, object))),
        // Passes guard themselves; what arrives here is a defect of the driver.
        move |_, defect, _| {
            error!(error = %chain(defect), "a reconcile ended abnormally");
            Action::requeue(backstop)
        },
        shared,
        store,
        requests.map(Ok::<_, std::convert::Infallible>).take_until(shutdown.cancelled_owned()),
        config,
    )
    .for_each(|ended| {
        if let Err(error) = ended {
            // Mostly an object that was deleted while it waited.
            debug!(error = %chain(&error), "not reconciled");
        }
        std::future::ready(())
    });
    tokio::select! {
        () = passes => {}
        () = listening => {}
    }
}

async fn listen<R: Reconciler>(
    shared: Arc<Shared<R>>,
    queue: Queue<R>,
    events: impl Stream<Item = watcher::Result<watcher::Event<Guarded<R>>>>,
    listed: impl Fn(Option<String>),
) {
    let mut events = std::pin::pin!(events);
    let mut primary = Primary::<R>::new(shared.fingerprints.clone());
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // The watcher backs off and starts again; /readyz shows what is wrong meanwhile.
            Err(error) => {
                warn!(controller = R::NAME, error = %chain(&error), "watch interrupted");
                listed(Some(chain(&error)));
                continue;
            }
        };
        for news in primary.hear(&event) {
            match news {
                // A closed queue means that the controller is stopping.
                News::Changed(key) => drop(queue.unbounded_send(object_ref::<R>(&key))),
                News::Gone(keys) => keys.iter().for_each(|key| shared.forget(key)),
                News::Synced => listed(None),
            }
        }
    }
}

impl<R: Reconciler> Shared<R> {
    fn forget(&self, key: &Key) {
        self.memory.forget(key);
        self.references.forget(key);
    }
}
