//! The driver: runs a [`Reconciler`] over the objects of a scope.
//!
//! One object never has two concurrent passes, at most [`Settings::concurrency`] passes run at the same time, and one
//! namespace has at most half of these (`queue/line`). Every pass has a deadline and a panic guard. [`crate::watch`] contains
//! what wakes an object, [`Backoff`] when it is requeued.

mod controller;
mod memory;
mod pass;
mod queue;
mod readiness;
mod settings;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::runtime::reflector::{self, Store};
use kube::{Client, Resource};
use tokio_util::sync::CancellationToken;

use self::controller::{Read, Shared, reference};
#[doc(hidden)]
pub use self::memory::Memory;
use self::queue::{LaneOf, Limits, Queue, SETTLE};

pub use self::readiness::Readiness;
pub use self::settings::{Backoff, Settings};
pub use crate::rbac::rules;

use crate::children::WatchContext;
use crate::events::Recorder;
use crate::external::DiscoveryCache;
use crate::lease::{Fence, settle};
use crate::reconciler::Reconciler;
use crate::scope::Scope;
use crate::telemetry::Metrics;
use crate::watch::Fingerprints;
use crate::watch::dependencies::Key;
use crate::watch::enqueue::Enqueuers;
use crate::watch::related::{Related, Subscriber};

/// The shared state of all controllers of an operator.
#[derive(Clone)]
pub struct Environment {
    /// The operator's client, built by [`crate::client::build`].
    pub client: Client,
    /// The operator's metrics.
    pub metrics: Metrics,
    /// The name of this replica, for events.
    pub instance: String,
    /// Settings of the controllers.
    pub settings: Settings,
    /// Starts no more passes, and stops the running ones that do not end within a moment.
    pub shutdown: CancellationToken,
}

/// Several controllers, their shared watches, and their readiness.
pub struct Operator {
    environment: Environment,
    related: Related,
    readiness: Readiness,
    enqueuers: Enqueuers,
    fence: Fence,
    controllers: Vec<BoxFuture<'static, ()>>,
}

impl Operator {
    /// An operator without controllers.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            related: Related::default(),
            readiness: Readiness::default(),
            enqueuers: Enqueuers::default(),
            fence: Fence::open(),
            controllers: Vec::new(),
        }
    }

    /// Allows controllers to write outside of Kubernetes only while this fence is open; their client has its own.
    #[must_use]
    pub fn fenced_by(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// What the operator waits for before it is ready.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Adds a controller for one scope.
    pub fn add<R: Reconciler>(&mut self, reconciler: R, scope: &Scope) {
        let (controller, subscriber) = assemble(
            reconciler,
            scope,
            &self.environment,
            &self.readiness,
            &self.enqueuers,
            self.fence.clone(),
        );
        self.related.subscribe(R::watches(), scope, &subscriber);
        self.related.follow(R::external_kinds(), scope, &subscriber);
        self.controllers.push(controller.boxed());
    }

    /// Runs until shutdown; running passes have a moment to finish. Dropping the future stops everything at once, but does not
    /// wait for the cancellation of SQL statements, as [`Elector::lead`](crate::lease::Elector::lead) does after a lost Lease.
    pub async fn run(self) {
        let Environment { client, settings, .. } = &self.environment;
        let watches = self
            .related
            .into_futures(client, &settings.watcher(), &self.readiness);
        let watches = async {
            join_all(watches).await;
            // Without any watch there is nothing to wait for here; the controllers decide when to end.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            _ = join_all(self.controllers) => {}
            () = watches => {}
        }
        settle(self.fence.tasks(), SETTLE).await;
    }
}

/// A controller that is not running yet, and its interface for watches of other kinds.
fn assemble<R: Reconciler>(
    reconciler: R,
    scope: &Scope,
    environment: &Environment,
    readiness: &Readiness,
    enqueuers: &Enqueuers,
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
    let (store, writer) = reflector::store();
    let limits = Limits::of(settings.concurrency);
    let queue = Queue::new(limits, lane_of::<R>(store.clone()), metrics.clone());
    let field_manager = format!("stanchion-{}", R::NAME);
    let owner = (
        R::Object::group(&()).into_owned(),
        R::Object::kind(&()).into_owned(),
    );
    let waking = queue.clone();
    let wake: Arc<dyn Fn(Key) + Send + Sync> = Arc::new(move |key| waking.wake(key));
    let known = Readiness::default();
    let (child_caches, watches) = R::child_kinds().open(&WatchContext {
        client: &client,
        scope,
        config: settings.watcher(),
        readiness: &[&known, readiness],
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
        dependencies: Arc::default(),
        child_caches,
        enqueuers: enqueuers.clone(),
        discovery: DiscoveryCache::default(),
        fingerprints: Fingerprints::default(),
        memory: Memory::default(),
        store,
        field_manager,
        fence,
    });
    let subscriber = Subscriber {
        owner,
        dependencies: Arc::clone(&shared.dependencies),
        wake,
    };
    enqueuers.register::<R::Object>(Arc::clone(&subscriber.wake));
    let listed = readiness.expect(&format!("list of {} in {scope}", R::Object::plural(&())));
    let passes = controller::run(shared, writer, scope.clone(), listed, known, shutdown);
    let running = async move {
        tokio::select! {
            biased;
            () = passes => {}
            () = endless(watches) => {}
        }
    };
    (running, subscriber)
}

/// The lane of an object, from its cached state.
fn lane_of<R: Reconciler>(store: Store<Read<R>>) -> LaneOf {
    Arc::new(move |key| {
        let cached = store.get(&reference::<R>(key))?;
        let object = cached.object()?;
        std::panic::catch_unwind(AssertUnwindSafe(|| R::lane(object))).ok()?
    })
}

/// Runs watches that never end; never returns, even without watches.
async fn endless(watches: Vec<BoxFuture<'static, ()>>) {
    join_all(watches).await;
    std::future::pending::<()>().await;
}
