//! An operator for a test: any controllers, in the process of the test.

use std::time::Duration;

use kube::{Client, Config};
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::{Reconciler, Scope};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::instrument::WithSubscriber as _;

use crate::namespace::TestNamespace;
use crate::running::Running;

/// A backoff with the usual factor and a much shorter base.
pub const QUICK_BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_millis(1600),
};

/// The settings of production, with a short backoff and without streaming lists.
pub fn settings() -> Settings {
    Settings {
        backoff: QUICK_BACKOFF,
        ..Settings::default()
    }
}

/// The environment of an operator with this client.
pub fn environment(client: Client, metrics: &Metrics, settings: Settings) -> Environment {
    Environment {
        client,
        metrics: metrics.clone(),
        instance: "test".into(),
        settings,
        shutdown: CancellationToken::new(),
    }
}

/// How an operator connects to the API server, and how it runs.
pub struct OperatorOptions {
    /// The API server, and the operator's identity there.
    pub config: Config,
    /// Faults of its requests; they record the requests, too.
    pub faults: Faults,
    /// Settings of the controllers.
    pub settings: Settings,
    /// The log of the operator.
    pub log: OperatorLog,
}

impl OperatorOptions {
    /// The same with these faults.
    #[must_use]
    pub fn with_faults(self, faults: &Faults) -> Self {
        let faults = faults.clone();
        Self { faults, ..self }
    }

    /// The same with these credentials.
    #[must_use]
    pub fn with_config(self, config: Config) -> Self {
        Self { config, ..self }
    }
}

impl TestNamespace {
    /// [`settings`], with streaming lists if the API server supports them, as in production.
    pub fn settings(&self) -> Settings {
        Settings {
            streaming_lists: Settings::streams_lists(&self.server_version),
            ..settings()
        }
    }

    /// An operator with all permissions, [`TestNamespace::settings`] and no faults, which writes to the log of this namespace.
    pub async fn operator_options(&self) -> OperatorOptions {
        OperatorOptions {
            config: self.cluster.config().await,
            faults: Faults::new(),
            settings: self.settings(),
            log: self.log.clone(),
        }
    }
}

/// An operator that does not run yet.
pub struct TestOperator {
    operator: Operator,
    metrics: Metrics,
    faults: Faults,
    shutdown: CancellationToken,
    log: OperatorLog,
    /// The name of the first controller, which [`Running`] observes.
    controller: &'static str,
}

impl TestOperator {
    /// An operator without controllers.
    pub fn new(options: OperatorOptions) -> Self {
        let metrics = Metrics::new("test");
        let client_options = Options::new("test").with_layer(options.faults.clone());
        let client = client::build(options.config, &metrics, &client_options).unwrap();
        let environment = environment(client, &metrics, options.settings);
        Self {
            shutdown: environment.shutdown.clone(),
            operator: Operator::new(environment),
            metrics,
            faults: options.faults,
            log: options.log,
            controller: "",
        }
    }

    /// The operator's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Adds a controller for one scope.
    pub fn add<R: Reconciler>(&mut self, controller: R, scope: &Scope) {
        if self.controller.is_empty() {
            self.controller = R::NAME;
        }
        self.operator.add(controller, scope);
    }

    /// The same with this controller for one namespace.
    #[must_use]
    pub fn with<R: Reconciler>(mut self, controller: R, namespace: &str) -> Self {
        self.add(controller, &Scope::Namespace(namespace.to_owned()));
        self
    }

    /// Starts it in a task.
    pub fn start(self) -> Running {
        let readiness = self.operator.readiness();
        let task = tokio::spawn(self.operator.run().with_subscriber(self.log.dispatch()));
        Running {
            faults: self.faults,
            metrics: self.metrics,
            readiness,
            shutdown: self.shutdown,
            log: self.log,
            controller: self.controller,
            task: AbortOnDropHandle::new(task),
        }
    }

    /// Starts it, and waits until its caches are synced: it would reconcile objects that are created earlier twice.
    pub async fn start_and_sync(self) -> Running {
        let running = self.start();
        running.readiness.wait().await;
        running
    }

    /// The parts that a crash test needs: the operator, its metrics, and the name of its controller.
    pub(crate) fn into_parts(self) -> (Operator, Metrics, &'static str) {
        (self.operator, self.metrics, self.controller)
    }
}
