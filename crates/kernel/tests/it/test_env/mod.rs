//! The test environment: the toy (`testing/toy`) in a namespace of a cluster, and on a scripted API server.

mod objects;
pub(crate) mod server;

use std::ops::Deref;

use kube::Config;
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::{Reconciler, Scope};
use stanchion_testenv::{OperatorOptions, TestNamespace, TestOperator};
use stanchion_testkit::faults::Faults;

pub(crate) use objects::writes_of;
pub(crate) use stanchion_testenv::{Running, WAIT_TIMEOUT, environment};
pub(crate) use stanchion_toy::{
    Boom, FINALIZER, POKE, Thing, Widget, WidgetController, WidgetSpec, WidgetStatus, World, crd,
};

/// As in production, except that transient problems are retried sooner.
pub(crate) fn settings() -> Settings {
    Settings {
        streaming_lists: false,
        ..stanchion_testenv::settings()
    }
}

/// A namespace with widgets, and the world outside it.
pub(crate) struct TestEnv {
    pub(crate) base: TestNamespace,
    pub(crate) world: World,
}

impl Deref for TestEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.base
    }
}

impl TestEnv {
    pub(crate) async fn new(prefix: &str) -> Self {
        let base = TestNamespace::new(prefix).await;
        base.cluster.install_crds([crd()]).await;
        Self {
            base,
            world: World::default(),
        }
    }

    /// With a Secret `mine`, and a widget `one` that reads it.
    pub(crate) async fn with_a_reader(prefix: &str) -> Self {
        let env = Self::new(prefix).await;
        env.password("mine", "one").await;
        env.widget("one", reading("mine")).await;
        env
    }

    /// Starts an operator as administrator.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(self.cluster.config().await, settings())
    }

    /// Starts an operator with these credentials and settings.
    pub(crate) fn operator_with(&self, config: Config, settings: Settings) -> Running {
        self.start(config, settings, self.controller())
    }

    /// Starts an operator of another controller.
    pub(crate) fn start<R: Reconciler>(&self, config: Config, settings: Settings, reconciler: R) -> Running {
        let options = OperatorOptions {
            config,
            faults: Faults::new(),
            settings,
            log: self.log.clone(),
        };
        TestOperator::new(options)
            .with(reconciler, &self.namespace)
            .start()
    }

    /// An operator for this namespace with its own client, which does not run yet.
    pub(crate) fn assemble(&self, environment: Environment) -> Operator {
        let mut operator = Operator::new(environment);
        operator.add(self.controller(), &Scope::Namespace(self.namespace.clone()));
        operator
    }

    /// The toy in the world of this environment.
    pub(crate) fn controller(&self) -> WidgetController {
        let world = self.world.clone();
        WidgetController { world }
    }
}

/// A widget that reads this Secret.
pub(crate) fn reading(secret: &str) -> WidgetSpec {
    WidgetSpec {
        size: 1,
        secret_ref: Some(secret.into()),
        ..WidgetSpec::default()
    }
}
