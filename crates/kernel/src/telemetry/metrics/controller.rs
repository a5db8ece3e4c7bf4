//! The numbers of one controller: its queue, its reconciles, their outcomes.
//!
//! A queued item and a running reconcile are guards. However they end (done, panicked, dropped at shutdown), depth
//! and active workers come back down, so neither gauge can drift.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::seconds_histogram;

/// How a reconcile ended, in controller-runtime's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Nothing is left to do until something changes.
    Success,
    /// It asked to run again at once.
    Requeue,
    /// It asked to run again after a time.
    RequeueAfter,
    /// It failed and will be tried again.
    Error,
    /// It failed, and only a changed spec can help.
    Terminal,
    /// It panicked. Counted as an error too.
    Panic,
}

impl Finish {
    const RESULTS: [&'static str; 4] = ["success", "error", "requeue", "requeue_after"];

    const fn result(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
            Self::Error | Self::Terminal | Self::Panic => "error",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

/// controller-runtime labels a queue twice: `name` is client-go's label, `controller` its own.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    controller: &'static str,
    class: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClassLabels {
    controller: &'static str,
    class: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug)]
pub(super) struct Families {
    total: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabel, Counter>,
    terminal_errors: Family<ControllerLabel, Counter>,
    panics: Family<ControllerLabel, Counter>,
    time: Histograms<ControllerLabel>,
    max_concurrent: Family<ControllerLabel, Gauge>,
    active: Family<ControllerLabel, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    waited: Histograms<QueueLabels>,
    outcomes: Family<OutcomeLabels, Counter>,
    problems: Family<ClassLabels, Gauge>,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            total: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            time: Family::new_with_constructor(seconds_histogram as fn() -> Histogram),
            max_concurrent: Family::default(),
            active: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: Family::new_with_constructor(queue_histogram as fn() -> Histogram),
            outcomes: Family::default(),
            problems: Family::default(),
        };
        let cr = registry.sub_registry_with_prefix("controller_runtime");
        cr.register("reconcile", "Reconciles by result", families.total.clone());
        cr.register(
            "reconcile_errors",
            "Reconciles that failed",
            families.errors.clone(),
        );
        cr.register(
            "terminal_reconcile_errors",
            "Reconciles that failed and are not retried until the spec changes",
            families.terminal_errors.clone(),
        );
        cr.register(
            "reconcile_panics",
            "Reconciles that panicked",
            families.panics.clone(),
        );
        cr.register(
            "reconcile_time_seconds",
            "Duration of a reconcile",
            families.time.clone(),
        );
        cr.register(
            "max_concurrent_reconciles",
            "Reconciles that may run at once",
            families.max_concurrent.clone(),
        );
        cr.register(
            "active_workers",
            "Reconciles that run now",
            families.active.clone(),
        );
        let queue = registry.sub_registry_with_prefix("workqueue");
        queue.register(
            "depth",
            "Objects that wait to be reconciled",
            families.depth.clone(),
        );
        queue.register("adds", "Objects put into the queue", families.adds.clone());
        queue.register(
            "retries",
            "Objects put into the queue after a failure",
            families.retries.clone(),
        );
        queue.register(
            "queue_duration_seconds",
            "Time between being due and being reconciled",
            families.waited.clone(),
        );
        registry.register(
            "stanchion_reconcile_outcome",
            "Reconciles by class of problem and reason; class is none where there is no problem",
            families.outcomes.clone(),
        );
        registry.register(
            "stanchion_problems",
            "Objects whose last reconcile ended in a problem of the class",
            families.problems.clone(),
        );
        families
    }

    pub(super) fn controller(self: &Arc<Self>, controller: &'static str) -> ControllerMetrics {
        let label = ControllerLabel { controller };
        let queue = QueueLabels {
            name: controller,
            controller,
        };
        for result in Finish::RESULTS {
            drop(self.total.get_or_create(&ResultLabels { controller, result }));
        }
        ControllerMetrics(Arc::new(Series {
            controller,
            errors: self.errors.get_or_create_owned(&label),
            terminal_errors: self.terminal_errors.get_or_create_owned(&label),
            panics: self.panics.get_or_create_owned(&label),
            time: self.time.get_or_create_owned(&label),
            max_concurrent: self.max_concurrent.get_or_create_owned(&label),
            active: self.active.get_or_create_owned(&label),
            depth: self.depth.get_or_create_owned(&queue),
            adds: self.adds.get_or_create_owned(&queue),
            retries: self.retries.get_or_create_owned(&queue),
            waited: self.waited.get_or_create_owned(&queue),
            families: Arc::clone(self),
        }))
    }
}

/// From a microsecond, an idle queue, to the quarter of an hour that a broken one takes.
fn queue_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 10.0, 10))
}

#[derive(Debug)]
struct Series {
    controller: &'static str,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    time: Histogram,
    max_concurrent: Gauge,
    active: Gauge,
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    families: Arc<Families>,
}

/// The numbers of one controller. A clone is a second handle on the same numbers.
#[derive(Clone, Debug)]
pub struct ControllerMetrics(Arc<Series>);

impl ControllerMetrics {
    /// The controller's name, the value of its labels.
    pub fn name(&self) -> &'static str {
        self.0.controller
    }

    /// Says how many reconciles may run at once.
    pub fn set_max_concurrent(&self, limit: usize) {
        self.0
            .max_concurrent
            .set(i64::try_from(limit).unwrap_or(i64::MAX));
    }

    /// An object is due and waits for a worker. Keep the guard with the waiting item.
    pub fn queued(&self) -> Queued {
        self.0.adds.inc();
        self.0.depth.inc();
        Queued {
            metrics: self.clone(),
            since: Instant::now(),
        }
    }

    /// An object will be tried again because it failed.
    pub fn retried(&self) {
        self.0.retries.inc();
    }

    /// A reconcile begins. Prefer [`Queued::started`] where there is a queue.
    pub fn started(&self) -> Running {
        self.0.active.inc();
        Running {
            metrics: self.clone(),
            since: Instant::now(),
        }
    }

    /// Counts the outcome of a reconcile; no class is an outcome without a problem.
    pub fn outcome(&self, class: Option<&'static str>, reason: &'static str) {
        let labels = OutcomeLabels {
            controller: self.0.controller,
            class: class.unwrap_or("none"),
            reason,
        };
        self.0.families.outcomes.get_or_create(&labels).inc();
    }

    /// Moves one object from its last class of problem to its present one; `None` is no problem, or no object.
    pub fn moved(&self, before: Option<&'static str>, now: Option<&'static str>) {
        if before == now {
            return;
        }
        let of = |class| ClassLabels {
            controller: self.0.controller,
            class,
        };
        if let Some(class) = before {
            self.0.families.problems.get_or_create(&of(class)).dec();
        }
        if let Some(class) = now {
            self.0.families.problems.get_or_create(&of(class)).inc();
        }
    }

    fn finished(&self, finish: Finish, took: Duration) {
        let labels = ResultLabels {
            controller: self.0.controller,
            result: finish.result(),
        };
        self.0.families.total.get_or_create(&labels).inc();
        self.0.time.observe(took.as_secs_f64());
        if finish.result() == "error" {
            self.0.errors.inc();
        }
        match finish {
            Finish::Terminal => _ = self.0.terminal_errors.inc(),
            Finish::Panic => _ = self.0.panics.inc(),
            _ => {}
        }
    }
}

/// An object that waits in the queue.
#[derive(Debug)]
#[must_use = "the object counts as waiting for as long as this lives"]
pub struct Queued {
    metrics: ControllerMetrics,
    since: Instant,
}

impl Queued {
    /// A worker took it.
    pub fn started(self) -> Running {
        self.metrics.0.waited.observe(self.since.elapsed().as_secs_f64());
        self.metrics.started()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.metrics.0.depth.dec();
    }
}

/// A reconcile that runs. Dropped without [`finish`](Self::finish) it was cancelled, and has no result.
#[derive(Debug)]
#[must_use = "the reconcile counts as running for as long as this lives"]
pub struct Running {
    metrics: ControllerMetrics,
    since: Instant,
}

impl Running {
    /// It ended, so.
    pub fn finish(self, finish: Finish) {
        self.metrics.finished(finish, self.since.elapsed());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.metrics.0.active.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;

    #[test]
    fn gauges_come_back_down_however_a_reconcile_ends() {
        let metrics = Metrics::new("1").controller("user");
        metrics.queued().started().finish(Finish::Panic);
        drop(metrics.queued().started());
        drop(metrics.queued());
        assert_eq!(metrics.0.depth.get(), 0);
        assert_eq!(metrics.0.active.get(), 0);
        assert_eq!(metrics.0.adds.get(), 3);
        assert_eq!(metrics.0.errors.get(), 1, "a panic is an error too");
        assert_eq!(metrics.0.panics.get(), 1);
        let errors = ResultLabels {
            controller: "user",
            result: "error",
        };
        assert_eq!(
            metrics.0.families.total.get_or_create(&errors).get(),
            1,
            "what was cancelled has no result"
        );
    }

    #[test]
    fn an_object_is_in_one_class_at_most() {
        let metrics = Metrics::new("1").controller("user");
        let of = |class| {
            metrics
                .0
                .families
                .problems
                .get_or_create(&ClassLabels {
                    controller: "user",
                    class,
                })
                .get()
        };
        metrics.moved(None, Some("transient"));
        metrics.moved(Some("transient"), Some("transient"));
        assert_eq!((of("transient"), of("human")), (1, 0));
        metrics.moved(Some("transient"), Some("human"));
        assert_eq!((of("transient"), of("human")), (0, 1));
        metrics.moved(Some("human"), None);
        assert_eq!((of("transient"), of("human")), (0, 0));
    }
}
