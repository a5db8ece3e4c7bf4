//! The driver: runs a [`Reconciler`] over the objects of a scope.
//!
//! One object never has two concurrent passes, at most [`Settings::concurrency`] passes run at the same time, and one
//! namespace has at most half of these (`queue`). Every pass has a deadline and a panic guard. [`crate::watch`] contains
//! what wakes an object, [`Backoff`] when it is requeued.

mod controller;
pub mod memory;
mod pass;
mod queue;
mod readiness;
mod settings;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::Client;
use tokio_util::sync::CancellationToken;

pub use self::readiness::Readiness;
pub use self::settings::{Backoff, Settings};
pub use crate::rbac::rules;

use crate::lease::Fence;
use crate::reconciler::Reconciler;
use crate::scope::Scope;
use crate::telemetry::Metrics;
use crate::watch::enqueue::Enqueuers;
use crate::watch::related::Related;

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
    /// Finishes running passes and starts no others.
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
        let (controller, subscriber) = controller::new(
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

    /// Runs until shutdown, and until all running passes have finished. Dropping the future stops everything at once.
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
    }
}
