//! Whether this process may still write.
//!
//! A replica that lost its Lease must not change anything any more, not even one that was frozen and resumes. So the
//! fence is checked before each group of statements, and therefore before its COMMIT. It belongs to the task, so the
//! code between the task and the session does not need to know it; without a fence everything is allowed.
//!
//! A session that is dropped in the middle of a statement cancels it, and a statement that is not cancelled may still
//! commit. So the fence also tracks these cancellations: the owner of the task waits for them before it lets another
//! replica begin.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::connection_config::ConnectionConfig;
use crate::error::{Error, Kind};
use crate::sqlstate::Doing;

tokio::task_local! {
    static FENCE: Fence;
}

/// Returns whether writes are allowed now, and tracks the cancellations of statements.
#[derive(Clone)]
pub struct Fence {
    may_write: Arc<dyn Fn() -> bool + Send + Sync>,
    cancellations: TaskTracker,
}

impl Fence {
    /// A fence with this check.
    pub fn new(may_write: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            may_write: Arc::new(may_write),
            cancellations: TaskTracker::new(),
        }
    }

    /// Tracks the cancellations of statements here.
    #[must_use]
    pub fn tracking(self, cancellations: TaskTracker) -> Self {
        Self {
            cancellations,
            ..self
        }
    }

    /// Runs a task that outlives the current one, as the cancellation of its statement does. The fence of the current task
    /// tracks it.
    pub fn outlive(task: impl Future<Output = ()> + Send + 'static, runtime: &Handle) {
        let tracker = FENCE.try_with(|fence| fence.cancellations.clone());
        tracker.unwrap_or_default().spawn_on(task, runtime);
    }

    /// Runs work whose writes check this fence. Spawned tasks do not check it.
    pub async fn around<F: Future>(self, work: F) -> F::Output {
        FENCE.scope(self, work).await
    }
}

impl std::fmt::Debug for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Fence").field(&(self.may_write)()).finish()
    }
}

/// Checks the fence of this task.
pub(crate) fn check(target: &ConnectionConfig) -> Result<(), Error> {
    let may_write = FENCE.try_with(|fence| (fence.may_write)()).unwrap_or(true);
    if may_write {
        return Ok(());
    }
    let cause = "another replica leads now, so nothing was sent";
    Err(Error::new(Kind::NotLeading, Doing::Altering, target, cause))
}
