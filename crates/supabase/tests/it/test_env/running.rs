//! An operator in this process.

use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::faults::{Call, Faults};
use stanchion_testkit::running;
use tokio::task::JoinHandle;

/// A running operator; it is killed when this is dropped.
pub(crate) struct Running {
    operator: running::Running,
    pub(crate) faults: Faults,
}

impl Running {
    pub(super) fn new(task: JoinHandle<()>, faults: Faults, metrics: Metrics) -> Self {
        Self {
            operator: running::Running::new("supabase", task, move || metrics.encode()),
            faults,
        }
    }

    /// The API calls for projects, in order, without watches and their lists, which are opened once.
    pub(crate) fn calls(&self) -> Vec<String> {
        of_objects(&self.faults.calls())
    }

    /// The writes to objects whose names begin like this.
    pub(crate) fn writes(&self, start: &str) -> Vec<String> {
        let mut writes = self.faults.writes();
        writes.retain(|call| call.target.name.starts_with(start));
        of_objects(&writes)
    }

    /// How many reconciles have ended.
    pub(crate) fn passes(&self) -> u64 {
        self.operator.passes()
    }

    /// Waits until no reconcile is running.
    pub(crate) async fn idle(&self) {
        self.operator.idle().await;
    }

    /// Kills it, like SIGKILL: nothing of it continues.
    pub(crate) async fn kill(self) {
        self.operator.kill().await;
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
