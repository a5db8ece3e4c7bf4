//! An operator in this process.

use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::faults::{Call, Faults};
use stanchion_testkit::running;
use tokio::task::JoinHandle;

/// An operator that runs; dropped, it is killed where it stands.
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
        self.operator.passes()
    }

    /// Waits until no pass is running.
    pub(crate) async fn idle(&self) {
        self.operator.idle().await;
    }

    /// Kills it, as SIGKILL would: nothing of it goes on.
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
