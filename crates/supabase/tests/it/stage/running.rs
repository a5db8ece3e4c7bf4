//! An operator in this process.

use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::faults::{Call, Faults};
use stanchion_testkit::wait;
use tokio::task::JoinHandle;

use super::PATIENCE;

/// An operator that runs; dropped, it is killed where it stands.
pub(crate) struct Running {
    task: JoinHandle<()>,
    metrics: Metrics,
    pub(crate) faults: Faults,
}

impl Running {
    pub(super) fn new(task: JoinHandle<()>, faults: Faults, metrics: Metrics) -> Self {
        Self {
            task,
            metrics,
            faults,
        }
    }

    /// The calls that a project has cost, in order: watches and their lists are opened once, whatever there is.
    pub(crate) fn calls(&self) -> Vec<String> {
        of_objects(&self.faults.calls())
    }

    /// Those of them that write to objects whose names begin like this.
    pub(crate) fn writes(&self, start: &str) -> Vec<String> {
        let mut writes = self.faults.writes();
        writes.retain(|call| call.target.name.starts_with(start));
        of_objects(&writes)
    }

    /// How many passes have ended.
    pub(crate) fn passes(&self) -> u64 {
        passes(&self.metrics)
    }

    /// Waits until no pass is running.
    pub(crate) async fn idle(&self) {
        let workers = "controller_runtime_active_workers{controller=\"supabase\"";
        wait::eventually(PATIENCE, "all passes to end", async || {
            total(&self.metrics, workers) == 0
        })
        .await;
    }

    /// Kills it, as SIGKILL would: nothing of it goes on.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
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

/// How many passes have ended.
pub(crate) fn passes(metrics: &Metrics) -> u64 {
    total(
        metrics,
        "controller_runtime_reconcile_total{controller=\"supabase\"",
    )
}

/// The sum of all numbers whose name and labels begin like this.
fn total(metrics: &Metrics, start: &str) -> u64 {
    let text = metrics.encode();
    let lines = text.lines().filter(|line| line.starts_with(start));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}
