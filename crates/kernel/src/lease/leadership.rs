//! The proof of being the leader: valid until a moment of the local clock, and not a bool.
//!
//! A bool stays true in a process that is paused; a deadline does not. Whoever resumes reads the
//! clock first, sees that the lease is over, and writes nothing.

use std::{future::poll_fn, pin::pin, task::Poll};

use tokio::{sync::watch, time::Instant};

/// Tells, at any time and for free, whether we lead. One belongs to one term: a leadership that
/// has ended never becomes valid again, even if this process is elected once more.
#[derive(Clone, Debug)]
pub struct Leadership {
    valid_until: watch::Receiver<Instant>,
}

/// The work needed the lease, and the lease is not ours (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this replica does not hold the leader lease, so it must not change anything; the leader will")]
pub struct NotLeading;

/// The elector's end of a [`Leadership`].
#[derive(Debug)]
pub(super) struct Tenure {
    valid_until: watch::Sender<Instant>,
}

impl Tenure {
    pub(super) fn new(valid_until: Instant) -> Self {
        Self {
            valid_until: watch::Sender::new(valid_until),
        }
    }

    pub(super) fn leadership(&self) -> Leadership {
        Leadership {
            valid_until: self.valid_until.subscribe(),
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
    /// Whether writing is allowed now. False from the renew deadline on, and when the term ended.
    pub fn is_valid(&self) -> bool {
        // The sender is dropped with the term.
        self.valid_until.has_changed().is_ok() && Instant::now() < *self.valid_until.borrow()
    }

    /// Waits until leadership is over.
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

    /// Runs `work` as long as leadership is valid; once it is not, `work` is not polled again.
    ///
    /// The clock is read before every poll. Waiting for a timer alone would not do: after a pause
    /// of the whole process, the runtime may well poll the work before it looks at its timers.
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
