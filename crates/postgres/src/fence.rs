//! Whether this process may still write.
//!
//! A replica that lost its Lease must not change anything any more, not even one that was frozen and resumes. So the
//! fence is checked before each group of statements, and therefore before its COMMIT. It belongs to the task, so the
//! code between the task and the session does not need to know it; without a fence everything is allowed.

use std::sync::Arc;

use crate::connection_config::ConnectionConfig;
use crate::error::{Error, Kind};
use crate::sqlstate::Doing;

tokio::task_local! {
    static FENCE: Fence;
}

/// Returns whether writes are allowed now.
#[derive(Clone)]
pub struct Fence(Arc<dyn Fn() -> bool + Send + Sync>);

impl Fence {
    /// A fence with this check.
    pub fn new(may_write: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may_write))
    }

    /// Runs work whose writes check this fence. Spawned tasks do not check it.
    pub async fn around<F: Future>(self, work: F) -> F::Output {
        FENCE.scope(self, work).await
    }
}

impl std::fmt::Debug for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Fence").field(&(self.0)()).finish()
    }
}

/// Checks the fence of this task.
pub(crate) fn check(target: &ConnectionConfig) -> Result<(), Error> {
    let may_write = FENCE.try_with(|fence| (fence.0)()).unwrap_or(true);
    if may_write {
        return Ok(());
    }
    let cause = "another replica leads now, so nothing was sent";
    Err(Error::new(Kind::NotLeading, Doing::Altering, target, cause))
}
