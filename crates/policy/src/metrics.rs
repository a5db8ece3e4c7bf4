//! The original's metrics: under its names for a collector, under Prometheus' spelling at `/metrics`.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use stanchion_kernel::Problem;
use stanchion_kernel::problem::Cause;

/// The names at `/metrics`, and the original's names for a collector.
pub const OTLP_NAMES: [(&str, &str); 11] = [
    ("pgroles_reconcile_total", "pgroles.reconcile.total"),
    (
        "pgroles_reconcile_duration_milliseconds",
        "pgroles.reconcile.duration",
    ),
    ("pgroles_reconcile_inflight", "pgroles.reconcile.inflight"),
    ("pgroles_plan_total", "pgroles.plan.total"),
    ("pgroles_plan_changes_total", "pgroles.plan.changes"),
    ("pgroles_lock_contention_total", "pgroles.lock_contention.total"),
    ("pgroles_policy_conflicts_total", "pgroles.policy.conflicts"),
    ("pgroles_invalid_spec_total", "pgroles.invalid_spec.total"),
    (
        "pgroles_database_connection_failures_total",
        "pgroles.database.connection_failures",
    ),
    ("pgroles_apply_total", "pgroles.apply.total"),
    ("pgroles_apply_statements_total", "pgroles.apply.statements"),
];

/// Labels of a finished reconcile.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Ended {
    result: &'static str,
    reason: &'static str,
}

/// Label of a result.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Result {
    result: &'static str,
}

/// The metrics of all policies. Clones share them.
#[derive(Clone, Debug)]
pub struct PolicyMetrics {
    reconciles: Family<Ended, Counter>,
    duration: Histogram,
    inflight: Gauge,
    plans: Family<Result, Counter>,
    plan_changes: Counter,
    lock_contention: Counter,
    conflicts: Counter,
    invalid_specs: Counter,
    connection_failures: Counter,
    applies: Family<Result, Counter>,
    apply_statements: Counter,
}

/// A reconcile that is counted as running.
#[derive(Debug)]
pub struct Running(Gauge);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl PolicyMetrics {
    /// Adds the metric families to a registry.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            duration: Histogram::new([
                5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 3e4, 6e4,
            ]),
            inflight: Gauge::default(),
            plans: Family::default(),
            plan_changes: Counter::default(),
            lock_contention: Counter::default(),
            conflicts: Counter::default(),
            invalid_specs: Counter::default(),
            connection_failures: Counter::default(),
            applies: Family::default(),
            apply_statements: Counter::default(),
        };
        registry.register(
            "pgroles_reconcile",
            "Reconciles by result",
            metrics.reconciles.clone(),
        );
        registry.register_with_unit(
            "pgroles_reconcile_duration",
            "How long reconciles took",
            Unit::Other("milliseconds".into()),
            metrics.duration.clone(),
        );
        registry.register(
            "pgroles_reconcile_inflight",
            "Reconciles that are running",
            metrics.inflight.clone(),
        );
        registry.register(
            "pgroles_plan",
            "Comparisons by result: clean or drift",
            metrics.plans.clone(),
        );
        registry.register(
            "pgroles_plan_changes",
            "Changes in plans",
            metrics.plan_changes.clone(),
        );
        registry.register(
            "pgroles_apply",
            "Plans that were carried out",
            metrics.applies.clone(),
        );
        let counters = [
            (
                "pgroles_lock_contention",
                "Reconciles that waited for another writer of the database",
                &metrics.lock_contention,
            ),
            (
                "pgroles_policy_conflicts",
                "Reconciles that found a conflicting policy",
                &metrics.conflicts,
            ),
            (
                "pgroles_invalid_spec",
                "Passes over an invalid spec",
                &metrics.invalid_specs,
            ),
            (
                "pgroles_database_connection_failures",
                "Reconciles that could not connect to the database",
                &metrics.connection_failures,
            ),
            (
                "pgroles_apply_statements",
                "Statements that changed a database",
                &metrics.apply_statements,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        metrics
    }

    /// Counts a running reconcile while it is held, also if it panics or times out.
    pub fn running(&self) -> Running {
        self.inflight.inc();
        Running(self.inflight.clone())
    }

    /// Records a finished reconcile, with its problem if it failed.
    pub fn ended(&self, problem: Option<&Problem>, elapsed: Duration) {
        let labels = match problem {
            Some(problem) => Ended {
                result: "error",
                reason: problem.reason,
            },
            None => Ended {
                result: "success",
                reason: "Reconciled",
            },
        };
        self.reconciles.get_or_create(&labels).inc();
        self.duration.observe(elapsed.as_secs_f64() * 1000.0);
        let counter = match problem.map(|problem| problem.cause) {
            Some(Cause::DatabaseBusy) => &self.lock_contention,
            Some(Cause::Overlap) => &self.conflicts,
            Some(Cause::InvalidSpec) => &self.invalid_specs,
            Some(Cause::Unreachable) => &self.connection_failures,
            _ => return,
        };
        counter.inc();
    }

    /// Records a comparison.
    pub fn planned(&self, changes: usize) {
        let result = if changes == 0 { "clean" } else { "drift" };
        self.plans.get_or_create(&Result { result }).inc();
        self.plan_changes
            .inc_by(u64::try_from(changes).unwrap_or(u64::MAX));
    }

    /// Records an executed plan with its number of statements, or a failed one.
    pub fn applied(&self, statements: Option<usize>) {
        let result = if statements.is_some() { "success" } else { "error" };
        self.applies.get_or_create(&Result { result }).inc();
        let statements = u64::try_from(statements.unwrap_or_default()).unwrap_or(u64::MAX);
        self.apply_statements.inc_by(statements);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A metric without a name for collectors would reach them under an unknown one.
    #[test]
    fn every_metric_has_the_originals_name() {
        let mut registry = Registry::default();
        let metrics = PolicyMetrics::register(&mut registry);
        metrics.ended(None, Duration::ZERO);
        metrics.planned(1);
        metrics.applied(Some(1));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let shown = text.lines().filter(|line| !line.starts_with('#'));
        let mut shown: Vec<&str> = shown
            .filter_map(|line| line.split(['{', ' ']).next())
            .filter(|name| !name.ends_with("_bucket") && !name.ends_with("_count"))
            .map(|name| name.trim_end_matches("_sum"))
            .collect();
        shown.sort_unstable();
        let mut named: Vec<&str> = OTLP_NAMES.iter().map(|(shown, _)| *shown).collect();
        named.sort_unstable();
        assert_eq!(shown, named);
    }

    #[test]
    fn what_runs_is_counted_until_it_ends() {
        let metrics = PolicyMetrics::register(&mut Registry::default());
        let (one, two) = (metrics.running(), metrics.running());
        assert_eq!(metrics.inflight.get(), 2);
        drop(one);
        assert_eq!(metrics.inflight.get(), 1);
        drop(two);
        assert_eq!(metrics.inflight.get(), 0);
    }
}
