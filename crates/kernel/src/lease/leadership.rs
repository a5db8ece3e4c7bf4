//! The proof of leadership: valid until a time of the local clock, not a bool.
//!
//! A bool stays true in a process that is paused; a deadline does not. A process that resumes reads the clock first,
//! finds that the lease has expired, and writes nothing.

use std::{future::poll_fn, pin::pin, task::Poll};

use tokio::{sync::watch, time::Instant};
use tokio_util::task::TaskTracker;

/// Returns at any time and at no cost whether we are the leader. It belongs to one term: an ended leadership never
/// becomes valid again, even if this process is elected once more.
#[derive(Clone, Debug)]
pub struct Leadership {
    valid_until: watch::Receiver<Instant>,
    /// What the work of this term leaves behind when it is dropped.
    tasks: TaskTracker,
}

/// The work needs the Lease, and we do not hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this replica does not hold the leader lease, so it must not change anything; the leader will")]
pub struct NotLeading;

/// The elector's end of a [`Leadership`].
#[derive(Debug)]
pub(super) struct Tenure {
    valid_until: watch::Sender<Instant>,
    tasks: TaskTracker,
}

impl Tenure {
    pub(super) fn new(valid_until: Instant) -> Self {
        Self {
            valid_until: watch::Sender::new(valid_until),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn leadership(&self) -> Leadership {
        Leadership {
            valid_until: self.valid_until.subscribe(),
            tasks: self.tasks.clone(),
        }
    }

    pub(super) fn extend(&self, valid_until: Instant) {
        self.valid_until.send_replace(valid_until);
    }

    /// Ends the term now, in every clone. Dropping the tenure does the same.
    pub(super) fn end(&self) {
        self.extend(Instant::now());
    }
}

impl Leadership {
    /// Tracks what outlives the work: the elector waits for these tasks before a term ends in [`Term::Lost`](super::Term).
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Whether writing is allowed. False after the renew deadline, and after the end of the term.
    pub fn is_valid(&self) -> bool {
        // The sender is dropped with the term.
        self.valid_until.has_changed().is_ok() && Instant::now() < *self.valid_until.borrow()
    }

    /// Waits until leadership ends.
    pub async fn ended(&self) {
        let mut valid_until = self.valid_until.clone();
        loop {
            let deadline = *valid_until.borrow_and_update();
            if Instant::now() >= deadline {
                return;
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => {}
                changed = valid_until.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Runs `work` while leadership is valid; then `work` is not polled again.
    ///
    /// The clock is read before every poll. A timer alone is not enough: after a pause of the whole process, the
    /// runtime may poll the work before its timers.
    pub async fn while_valid<F: Future>(&self, work: F) -> Result<F::Output, NotLeading> {
        let mut ended = pin!(self.ended());
        let mut work = pin!(work);
        poll_fn(|cx| {
            if !self.is_valid() || ended.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(NotLeading));
            }
            work.as_mut().poll(cx).map(Ok)
        })
        .await
    }
}
