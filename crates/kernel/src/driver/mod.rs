//! The driver: runs a [`Reconciler`] over the objects of a scope.
//!
//! One object never has two concurrent passes, at most [`Settings::concurrency`] passes run at the same time, and one
//! namespace has at most half of these (`line`). Every pass has a deadline and a panic guard. [`crate::watch`] contains
//! what wakes an object, [`backoff`] when it is requeued.

pub mod backoff;
mod controller;
mod line;
pub mod memory;
mod pass;
mod queue;
mod rights;
mod settings;
mod synced;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::Client;
use tokio_util::sync::CancellationToken;

pub use self::backoff::Backoff;
pub use self::rights::rules;
pub use self::settings::Settings;
pub use self::synced::Synced;

use crate::lease::Fence;
use crate::reconciler::Reconciler;
use crate::scope::Scope;
use crate::telemetry::Metrics;
use crate::watch::bells::Bells;
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
    synced: Synced,
    bells: Bells,
    fence: Fence,
    controllers: Vec<BoxFuture<'static, ()>>,
}

impl Operator {
    /// An operator without controllers.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            related: Related::default(),
            synced: Synced::default(),
            bells: Bells::default(),
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
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Adds a controller for one scope.
    pub fn add<R: Reconciler>(&mut self, reconciler: R, scope: &Scope) {
        let (controller, subscriber) = controller::new(
            reconciler,
            scope,
            &self.environment,
            &self.synced,
            &self.bells,
            self.fence.clone(),
        );
        self.related.subscribe(R::watches(), scope, &subscriber);
        self.related.follow(R::foreign(), scope, &subscriber);
        self.controllers.push(controller.boxed());
    }

    /// Runs until shutdown, and until all running passes have finished. Dropping the future stops everything at once.
    pub async fn run(self) {
        let Environment { client, settings, .. } = &self.environment;
        let watches = self
            .related
            .into_futures(client, &settings.watcher(), &self.synced);
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
