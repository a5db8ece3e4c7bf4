//! Kills an operator at every write to the API, or at every SQL statement, and compares the ends.
//!
//! [`stanchion_testkit::crash`] describes the method, for any operator. Here it is an operator of the kernel, so that a
//! scenario only says how it is built: whether it has looked at its objects is in its metrics.

use std::sync::Mutex;

use serde_json::Value;
use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::crash::{self, Scenario, SqlScenario};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::proxy::Proxy;

pub use stanchion_testkit::crash::Report;

use crate::operator::TestOperator;
use crate::running;

/// A sequence of an operator's work, with a start and an end.
#[allow(
    async_fn_in_trait,
    reason = "all runs are polled by the test's own task; nothing has to be Send"
)]
pub trait CrashScenario: 'static {
    /// The resources of one run: a namespace, perhaps a database.
    type Run;

    /// Prepares a run: creates the objects that the operator will find.
    async fn set_up(&self) -> Self::Run;

    /// A new operator with these faults.
    async fn operator(&self, run: &Self::Run, faults: Faults) -> TestOperator;

    /// Whether the object is gone, so that an operator has nothing to reconcile.
    async fn is_gone(&self, run: &Self::Run) -> bool {
        let _ = run;
        false
    }

    /// Returns when the end is reached; panics if that takes too long.
    async fn converge(&self, run: &Self::Run);

    /// The final state, normalised, including the state outside of the cluster.
    async fn end_state(&self, run: &Self::Run) -> Value;

    /// Replaces what differs between runs (the name of the namespace) in a text by a common placeholder.
    fn mask(&self, run: &Self::Run, text: &str) -> String;
}

/// A scenario whose operator connects to its server through a proxy, without TLS, which the proxy cannot read.
pub trait SqlCrashScenario: CrashScenario {
    /// The proxy of a run.
    fn proxy(run: &Self::Run) -> &Proxy;
}

/// Runs the scenario with a crash at every write; panics if any final state differs from the reference.
pub async fn crash_at_every_write<S: CrashScenario>(scenario: S) -> Report {
    Box::pin(crash::crash_at_every_write(&Observed(scenario))).await
}

/// Runs the scenario with a crash and with a broken connection at every statement; panics if any final state differs
/// from the reference.
pub async fn crash_at_every_statement<S: SqlCrashScenario>(scenario: S) -> Report {
    Box::pin(crash::crash_at_every_statement(&Observed(scenario))).await
}

/// A scenario whose operators are observed by their metrics.
struct Observed<S>(S);

struct Run<R> {
    run: R,
    /// The metrics of the current operator, and the name of its controller.
    current: Mutex<Option<(Metrics, &'static str)>>,
}

/// Resets the current operator on drop.
struct Current<'a, R>(&'a Run<R>);

impl<R> Drop for Current<'_, R> {
    fn drop(&mut self) {
        *self.0.current.lock().unwrap() = None;
    }
}

impl<S: CrashScenario> Scenario for Observed<S> {
    type Run = Run<S::Run>;

    async fn set_up(&self) -> Self::Run {
        Run {
            run: self.0.set_up().await,
            current: Mutex::default(),
        }
    }

    async fn operate(&self, run: &Self::Run, faults: Faults) {
        let (operator, metrics, controller) = self.0.operator(&run.run, faults).await.into_parts();
        *run.current.lock().unwrap() = Some((metrics, controller));
        let _current = Current(run);
        operator.run().await;
    }

    async fn has_looked(&self, run: &Self::Run) -> bool {
        let current = run.current.lock().unwrap().clone();
        current.is_some_and(|(metrics, controller)| running::has_looked(&metrics.encode(), controller))
            || self.0.is_gone(&run.run).await
    }

    async fn converge(&self, run: &Self::Run) {
        self.0.converge(&run.run).await;
    }

    async fn end_state(&self, run: &Self::Run) -> Value {
        self.0.end_state(&run.run).await
    }

    fn mask(&self, run: &Self::Run, text: &str) -> String {
        self.0.mask(&run.run, text)
    }
}

impl<S: SqlCrashScenario> SqlScenario for Observed<S> {
    fn proxy(run: &Self::Run) -> &Proxy {
        S::proxy(&run.run)
    }
}
