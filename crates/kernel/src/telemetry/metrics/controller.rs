//! Metrics of one controller: its queue, its reconciles, their results.
//!
//! A queued item and a running reconcile are guards. However they end (done, panicked, dropped at shutdown), depth and
//! active workers decrease again, so neither gauge can drift.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};

use super::families::{ClassLabels, ControllerLabel, Families, OutcomeLabels, QueueLabels, ResultLabels};

/// The result of a reconcile, in controller-runtime's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Nothing to do until something changes.
    Success,
    /// It is requeued at once.
    Requeue,
    /// It is requeued after a time.
    RequeueAfter,
    /// It failed and is retried.
    Error,
    /// It failed, and only a changed spec can help.
    Terminal,
    /// It panicked. Also counted as an error.
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

/// Metrics of one controller. Clones share the metrics.
#[derive(Clone, Debug)]
pub struct ControllerMetrics(Arc<Series>);

impl ControllerMetrics {
    /// The series of this controller, at zero.
    pub(super) fn of(families: &Arc<Families>, controller: &'static str) -> Self {
        let label = ControllerLabel { controller };
        let queue = QueueLabels {
            name: controller,
            controller,
        };
        for result in Finish::RESULTS {
            drop(families.total.get_or_create(&ResultLabels { controller, result }));
        }
        Self(Arc::new(Series {
            controller,
            errors: families.errors.get_or_create_owned(&label),
            terminal_errors: families.terminal_errors.get_or_create_owned(&label),
            panics: families.panics.get_or_create_owned(&label),
            time: families.time.get_or_create_owned(&label),
            max_concurrent: families.max_concurrent.get_or_create_owned(&label),
            active: families.active.get_or_create_owned(&label),
            depth: families.depth.get_or_create_owned(&queue),
            adds: families.adds.get_or_create_owned(&queue),
            retries: families.retries.get_or_create_owned(&queue),
            waited: families.waited.get_or_create_owned(&queue),
            families: Arc::clone(families),
        }))
    }

    /// The controller's name, the value of its labels.
    pub fn name(&self) -> &'static str {
        self.0.controller
    }

    /// Sets the maximum number of concurrent reconciles.
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

    /// An object is retried because it failed.
    pub fn retried(&self) {
        self.0.retries.inc();
    }

    /// A reconcile begins. Prefer [`Queued::started`] if there is a queue.
    pub fn started(&self) -> Running {
        self.0.active.inc();
        Running {
            metrics: self.clone(),
            since: Instant::now(),
        }
    }

    /// Counts the result of a reconcile; without a class there was no problem.
    pub fn outcome(&self, class: Option<&'static str>, reason: &'static str) {
        let labels = OutcomeLabels {
            controller: self.0.controller,
            class: class.unwrap_or("none"),
            reason,
        };
        self.0.families.outcomes.get_or_create(&labels).inc();
    }

    /// Moves one object from its last class of problem to its current one; `None` means no problem, or no object.
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

/// A running reconcile. If it is dropped without [`finish`](Self::finish), it was cancelled, and has no result.
#[derive(Debug)]
#[must_use = "the reconcile counts as running for as long as this lives"]
pub struct Running {
    metrics: ControllerMetrics,
    since: Instant,
}

impl Running {
    /// The reconcile ended with this result.
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
