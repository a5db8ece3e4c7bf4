//! Waits for what dropped passes leave behind.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tracing::warn;

/// Waits until the stopped passes are dropped and their statements are cancelled. A statement that is not cancelled may
/// commit after the next leader has begun.
pub(crate) async fn settle(tasks: &TaskTracker, limit: Duration) {
    tasks.close();
    if timeout(limit, tasks.wait()).await.is_err() {
        warn!(
            tasks = tasks.len(),
            "statements of stopped passes are not cancelled yet; the timeouts of the server apply"
        );
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_stopped_passes_left_behind_is_waited_for_but_not_for_long() {
        let begun = Instant::now();
        let tasks = TaskTracker::new();
        let (short, limit) = (Duration::from_secs(1), Duration::from_secs(2));
        settle(&tasks, limit).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "nothing is left behind");
        tasks.spawn(sleep(short));
        settle(&tasks, limit).await;
        assert_eq!(begun.elapsed(), short);
        tasks.spawn(std::future::pending::<()>());
        settle(&tasks, limit).await;
        assert_eq!(begun.elapsed(), short + limit);
    }
}
