//! The metric families that all controllers share, under their exported names.

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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ControllerLabel {
    pub(super) controller: &'static str,
}

/// controller-runtime labels a queue twice: `name` is client-go's label, `controller` its own.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct QueueLabels {
    pub(super) name: &'static str,
    pub(super) controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) controller: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OutcomeLabels {
    pub(super) controller: &'static str,
    pub(super) class: &'static str,
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ClassLabels {
    pub(super) controller: &'static str,
    pub(super) class: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug)]
pub(super) struct Families {
    pub(super) total: Family<ResultLabels, Counter>,
    pub(super) errors: Family<ControllerLabel, Counter>,
    pub(super) terminal_errors: Family<ControllerLabel, Counter>,
    pub(super) panics: Family<ControllerLabel, Counter>,
    pub(super) time: Histograms<ControllerLabel>,
    pub(super) max_concurrent: Family<ControllerLabel, Gauge>,
    pub(super) active: Family<ControllerLabel, Gauge>,
    pub(super) depth: Family<QueueLabels, Gauge>,
    pub(super) adds: Family<QueueLabels, Counter>,
    pub(super) retries: Family<QueueLabels, Counter>,
    pub(super) waited: Histograms<QueueLabels>,
    pub(super) outcomes: Family<OutcomeLabels, Counter>,
    pub(super) problems: Family<ClassLabels, Gauge>,
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
}

/// From a microsecond, for an idle queue, to a quarter of an hour, for a broken one.
fn queue_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 10.0, 10))
}
