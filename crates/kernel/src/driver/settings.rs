//! Settings of the controllers.

use std::time::Duration;

use kube::runtime::watcher;

use super::Backoff;

/// Settings of the controllers. kube's own defaults (unbounded concurrency, no deadline) do not apply.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum number of concurrent passes of one controller. One namespace has at most half of them, so that no tenant
    /// delays all others.
    pub concurrency: u16,
    /// Maximum duration of a pass.
    pub deadline: Duration,
    /// Minimum interval between two passes of an object without changes and failures; a spec cannot ask for a shorter
    /// one.
    pub shortest_interval: Duration,
    /// How transient problems are retried.
    pub backoff: Backoff,
    /// Whether the API server supports streaming lists (1.34 and later): the cheapest way to start.
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
    /// The configuration of watches.
    pub(super) fn watcher(&self) -> watcher::Config {
        let config = watcher::Config::default();
        // Small pages: the allocator keeps forever what one page needed.
        if self.streaming_lists {
            config.streaming_lists()
        } else {
            config.page_size(50)
        }
    }
}
