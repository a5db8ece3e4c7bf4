//! Guards that update the counters of an account: answers, connections that are being opened, waiting tasks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Host;
use crate::observe::{StatementObserver, Statements};

/// Reports every answer to the account.
pub(super) struct Witness {
    host: Weak<Host>,
    observer: Arc<dyn StatementObserver>,
}

impl Witness {
    pub(super) fn new(host: Weak<Host>, observer: Arc<dyn StatementObserver>) -> Self {
        Self { host, observer }
    }
}

impl StatementObserver for Witness {
    fn observe(&self, statements: &Statements<'_>) {
        self.observer.observe(statements);
        if let Some(host) = self.host.upgrade() {
            host.witness(statements);
        }
    }

    fn abandoned(&self, after: Duration) {
        self.observer.abandoned(after);
        if let Some(host) = self.host.upgrade() {
            host.abandoned(after);
        }
    }
}

/// The slot of a connection that is being opened; released unless it is kept.
pub(super) struct Slot<'h>(&'h Host);

impl<'h> Slot<'h> {
    /// The caller has counted the connection as open already.
    pub(super) fn of(host: &'h Host) -> Self {
        Self(host)
    }

    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

/// Counts a waiting task while it waits.
pub(super) struct Waiting<'h>(&'h AtomicUsize);

impl<'h> Waiting<'h> {
    pub(super) fn at(counter: &'h AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
