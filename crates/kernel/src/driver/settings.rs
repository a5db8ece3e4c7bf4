//! Settings of the controllers, and the requeue times that follow from them.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::runtime::watcher;

use crate::ambient;
use crate::problem::Retry;

/// The longest requeue time. Later times are beyond the lifetime of a process, and this one does not overflow a clock.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// The first minor version in which streaming lists are on by default and cheaper than pages.
const STREAMS_LISTS: u32 = 34;

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
    /// Whether the API server supports streaming lists ([`Settings::streams_lists`]): the cheapest way to start.
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
    /// Whether an API server of this version supports streaming lists. Some vendors append a `+` to the minor version.
    pub fn streams_lists(version: &Info) -> bool {
        let minor = version.minor.trim_end_matches(|c: char| !c.is_ascii_digit());
        version.major == "1" && minor.parse().is_ok_and(|minor: u32| minor >= STREAMS_LISTS)
    }

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

/// The delay after the nth consecutive failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// The maximum. It limits how long a recovery goes unnoticed, so it is short.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    /// The delay after `failures` consecutive failures, without jitter.
    pub fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }

    /// When to retry, if at all.
    pub fn after(&self, retry: Retry, failures: u32) -> Option<Duration> {
        match retry {
            Retry::Backoff => Some(jitter(self.delay(failures))),
            Retry::After(delay) => Some(jitter(delay)),
            Retry::Never => None,
        }
    }
}

/// Adds up to a fifth, so that objects which failed together are not retried together. It never shortens a delay: a
/// delay also protects an overloaded server.
pub(super) fn jitter(delay: Duration) -> Duration {
    let delay = delay.min(LONGEST);
    delay.saturating_add(delay.mul_f64(ambient::fraction() / 5.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_streamed_from_1_34_on() {
        for (major, minor, expected) in [
            ("1", "33", false),
            ("1", "34", true),
            ("1", "36+", true),
            ("1", "9", false),
            ("", "", false),
            ("2", "34", false),
        ] {
            let version = Info {
                major: major.into(),
                minor: minor.into(),
                ..Info::default()
            };
            assert_eq!(Settings::streams_lists(&version), expected, "{major}.{minor}");
        }
    }

    #[test]
    fn it_doubles_up_to_the_cap() {
        let backoff = Backoff::default();
        let seconds: Vec<u64> = (1..=8).map(|n| backoff.delay(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(backoff.delay(u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn jitter_only_adds() {
        for _ in 0..1000 {
            let delay = jitter(Duration::from_secs(10));
            assert!((Duration::from_secs(10)..Duration::from_secs(12)).contains(&delay));
        }
    }

    /// The longest duration that a manifest can hold.
    #[test]
    fn no_delay_overflows() {
        for delay in [Duration::from_secs(u64::MAX), Duration::MAX] {
            assert!(jitter(delay) >= LONGEST);
            let after = Backoff::default().after(Retry::After(delay), 1).unwrap();
            assert!(tokio::time::Instant::now().checked_add(after).is_some());
        }
    }

    #[test]
    fn never_means_never() {
        assert_eq!(Backoff::default().after(Retry::Never, 3), None);
    }
}
