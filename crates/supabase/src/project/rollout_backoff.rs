//! Decides when to read the pods of a slow rollout. A read costs a call, and most rollouts are merely slow: so only
//! pods that exist and do not progress are read, with exponential backoff.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use stanchion_kernel::children::Rollout;
use tokio::time::Instant;

/// Delay of the first read.
const FIRST: Duration = Duration::from_secs(10);
/// The longest delay between two reads.
pub const MOST: Duration = Duration::from_mins(2);

/// Rollouts that do not progress.
#[derive(Clone, Debug)]
pub struct StalledRollout {
    /// Digest of their progress.
    at: u64,
    /// When to read the pods.
    next: Instant,
    /// The current delay.
    retry_delay: Duration,
}

impl StalledRollout {
    /// The next state for these rollouts; `None` if there is no pod to wait for.
    pub fn after<'a>(
        before: Option<Self>,
        rollouts: impl Iterator<Item = &'a Rollout>,
        now: Instant,
    ) -> Option<Self> {
        let mut at = DefaultHasher::new();
        let mut waiting = false;
        for rollout in rollouts {
            (
                rollout.generation,
                rollout.updated,
                rollout.ready,
                rollout.available,
            )
                .hash(&mut at);
            // If no pod could be created, the Deployment itself says why.
            waiting |= !rollout.is_complete() && rollout.updated > 0;
        }
        let at = at.finish();
        let new = || Self {
            at,
            next: now + FIRST,
            retry_delay: FIRST,
        };
        waiting.then(|| before.filter(|before| before.at == at).unwrap_or_else(new))
    }

    /// The pods were read now.
    pub fn asked(&mut self, now: Instant) {
        self.retry_delay = (self.retry_delay * 2).min(MOST);
        self.next = now + self.retry_delay;
    }

    /// How long until the pods are to be read.
    pub fn left(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pod of two is ready.
    const BEHIND: Rollout = Rollout {
        generation: 1,
        observed: 1,
        desired: 2,
        replicas: 2,
        updated: 2,
        ready: 1,
        available: 1,
        stuck: None,
    };

    fn after(before: Option<StalledRollout>, rollout: &Rollout, now: Instant) -> Option<StalledRollout> {
        StalledRollout::after(before, [rollout].into_iter(), now)
    }

    #[test]
    fn pods_of_a_stalled_rollout_are_read_with_backoff() {
        let mut now = Instant::now();
        let mut stalled = after(None, &BEHIND, now).unwrap();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let left = stalled.left(now);
            waits.push(left.as_secs());
            now += left;
            stalled = after(Some(stalled), &BEHIND, now).unwrap();
            assert_eq!(stalled.left(now), Duration::ZERO);
            stalled.asked(now);
        }
        assert_eq!(waits, [10, 20, 40, 80, 120, 120]);
    }

    #[test]
    fn a_step_forward_is_waited_for_anew() {
        let start = Instant::now();
        let mut stalled = after(None, &BEHIND, start).unwrap();
        stalled.asked(start);
        let moved = Rollout { ready: 0, ..BEHIND };
        let later = start + Duration::from_secs(5);
        let stalled = after(Some(stalled), &moved, later).unwrap();
        assert_eq!(stalled.left(later), FIRST);
    }

    #[test]
    fn missing_and_ready_pods_are_not_read() {
        let none = Rollout { updated: 0, ..BEHIND };
        let complete = Rollout {
            ready: 2,
            available: 2,
            ..BEHIND
        };
        for rollout in [none, complete] {
            assert!(after(None, &rollout, Instant::now()).is_none(), "{rollout:?}");
        }
    }
}
