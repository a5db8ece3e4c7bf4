//! The driver: runs a [`Reconciler`] over the objects of a scope.
//!
//! One object never runs twice at once, at most [`Settings::concurrency`] run together, and one namespace has at most
//! half of these (`line`); a deadline and a panic guard stand around every pass; what wakes an object
//! is in [`crate::watch`]; when it is looked at again is in [`backoff`].

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

/// What all controllers of an operator share.
#[derive(Clone)]
pub struct Environment {
    /// The operator's client, made by [`crate::client::build`].
    pub client: Client,
    /// The operator's numbers.
    pub metrics: Metrics,
    /// The name of this replica, for events.
    pub instance: String,
    /// How controllers are run.
    pub settings: Settings,
    /// Lets running passes finish and starts no others.
    pub shutdown: CancellationToken,
}

/// Several controllers, the watches that they share, and what they wait for before they are ready.
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

    /// Lets controllers write outside Kubernetes only while this fence is open; their client has one of its own.
    #[must_use]
    pub fn fenced_by(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// What is waited for before the operator is ready.
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

    /// Runs until shutdown, and until what was running then has finished. Dropping the future stops
    /// everything at once.
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
