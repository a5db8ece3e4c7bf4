//! How controllers are run.

use std::time::Duration;

use kube::runtime::watcher;

use super::Backoff;

/// How controllers are run. kube's own defaults (no bound on concurrency, no deadline) are not ours.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many objects of one controller are reconciled together: half of these of one namespace, so that nobody's
    /// objects hold up everybody's.
    pub concurrency: u16,
    /// How long one pass may take.
    pub deadline: Duration,
    /// How often an object is looked at although nothing changed and nothing failed, at most: its spec may ask for more.
    pub shortest_interval: Duration,
    /// How transient problems are retried.
    pub backoff: Backoff,
    /// Whether the API server streams lists (1.34 and newer): the cheapest way to start.
    pub streaming_lists: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 16,
            deadline: Duration::from_mins(1),
            shortest_interval: Duration::ZERO,
            backoff: Backoff::default(),
            streaming_lists: false,
        }
    }
}

impl Settings {
    /// How watches are opened.
    pub(super) fn watcher(&self) -> watcher::Config {
        let config = watcher::Config::default();
        // Small pages: the allocator keeps what one page needed for ever.
        if self.streaming_lists {
            config.streaming_lists()
        } else {
            config.page_size(50)
        }
    }
}
