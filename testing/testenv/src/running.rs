//! An operator that runs in the process of the test, and its metrics.

use std::fmt;

use stanchion_kernel::driver::Readiness;
use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::faults::{Call, Faults};
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::wait::{self, Wait};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::namespace::WAIT_TIMEOUT;

/// A running operator. Dropping the value kills it, as SIGKILL would.
pub struct Running {
    /// Records its requests, and injects faults into them.
    pub faults: Faults,
    /// Its metrics.
    pub metrics: Metrics,
    /// What it waits for before it is ready.
    pub readiness: Readiness,
    /// Ends it, as SIGTERM would.
    pub shutdown: CancellationToken,
    /// Its log.
    pub log: OperatorLog,
    pub(crate) controller: &'static str,
    pub(crate) task: AbortOnDropHandle<()>,
}

impl Running {
    /// A wait that shows the operator's log when it fails.
    pub fn wait(&self) -> Wait<'_> {
        wait::within(WAIT_TIMEOUT).showing(&self.log)
    }

    /// The number of passes of its first controller that have ended.
    pub fn passes(&self) -> u64 {
        passes(&self.metrics_text(), self.controller)
    }

    /// Waits until its first controller has nothing waiting or running, and every request has been answered.
    pub async fn idle(&self) {
        let is_idle = async || waiting_or_running(&self.metrics_text(), self.controller) == 0;
        self.wait().eventually("the operator to be idle", is_idle).await;
        self.faults.settled().await;
    }

    /// The sum of all metrics whose name and labels start with this text.
    pub fn total(&self, start: &str) -> u64 {
        total(&self.metrics_text(), start)
    }

    /// All metrics, as in `/metrics`.
    pub fn metrics_text(&self) -> String {
        self.metrics.encode()
    }

    /// Its requests about single objects, in order: method, resource, name and subresource. Lists and watches are not
    /// among them: they are opened once.
    pub fn calls(&self) -> Vec<String> {
        of_objects(&self.faults.calls())
    }

    /// Those of its writes whose objects have names that start so.
    pub fn writes_to(&self, start: &str) -> Vec<String> {
        let mut writes = self.faults.writes();
        writes.retain(|call| call.target.name.starts_with(start));
        of_objects(&writes)
    }

    /// Waits for the end of an operator that is shutting down.
    pub async fn ended(self) {
        self.task.await.unwrap();
    }

    /// Kills the operator: none of its tasks continues.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an operator with the controller {}", self.controller)
    }
}

fn of_objects(calls: &[Call]) -> Vec<String> {
    let text = |call: &Call| {
        let target = &call.target;
        format!(
            "{} {} {} {}",
            call.method, target.resource, target.name, target.subresource
        )
    };
    let of_objects = calls.iter().filter(|call| !call.target.name.is_empty());
    of_objects.map(text).collect()
}

/// Whether a controller has finished a pass, and no pass runs or waits.
pub(crate) fn has_looked(metrics: &str, controller: &str) -> bool {
    passes(metrics, controller) > 0 && waiting_or_running(metrics, controller) == 0
}

fn waiting_or_running(metrics: &str, controller: &str) -> u64 {
    let running = total(
        metrics,
        &of_controller("controller_runtime_active_workers", controller),
    );
    running + total(metrics, &format!("workqueue_depth{{name=\"{controller}\""))
}

fn passes(metrics: &str, controller: &str) -> u64 {
    total(
        metrics,
        &of_controller("controller_runtime_reconcile_total", controller),
    )
}

fn of_controller(name: &str, controller: &str) -> String {
    format!("{name}{{controller=\"{controller}\"")
}

fn total(metrics: &str, start: &str) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(start));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_the_controller() {
        let text = "controller_runtime_reconcile_total{controller=\"user\",result=\"success\"} 3\n\
                    controller_runtime_reconcile_total{controller=\"user\",result=\"error\"} 1\n\
                    controller_runtime_reconcile_total{controller=\"other\",result=\"error\"} 9\n";
        assert_eq!(passes(text, "user"), 4);
        assert_eq!(total(text, "controller_runtime_reconcile_total"), 13);
    }

    #[test]
    fn an_operator_has_looked_when_nothing_is_left_to_look_at() {
        for (passes, running, waiting, looked) in [
            (0, 0, 0, false),
            (1, 1, 0, false),
            (1, 0, 1, false),
            (1, 0, 0, true),
        ] {
            let text = format!(
                "controller_runtime_reconcile_total{{controller=\"user\",result=\"success\"}} {passes}\n\
                 controller_runtime_active_workers{{controller=\"user\"}} {running}\n\
                 workqueue_depth{{name=\"user\",controller=\"user\"}} {waiting}\n"
            );
            assert_eq!(has_looked(&text, "user"), looked, "{text}");
        }
    }
}
