//! An operator in this process.

use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::wait;
use tokio::task::JoinHandle;

use super::PATIENCE;

/// An operator that runs; dropped, it is killed where it stands.
pub(crate) struct Running {
    pub(super) task: JoinHandle<()>,
    pub(crate) metrics: Metrics,
}

impl Running {
    /// How many passes over users have ended.
    pub(crate) fn passes(&self) -> u64 {
        self.total("controller_runtime_reconcile_total{controller=\"user\"")
    }

    /// Waits until no pass is running.
    pub(crate) async fn idle(&self) {
        let workers = "controller_runtime_active_workers{controller=\"user\"";
        wait::eventually(PATIENCE, "all passes to end", async || self.total(workers) == 0).await;
    }

    /// The sum of all numbers whose name and labels begin like this.
    pub(crate) fn total(&self, start: &str) -> u64 {
        let text = self.metrics.encode();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
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
