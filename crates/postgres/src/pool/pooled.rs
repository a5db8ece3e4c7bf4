//! A connection that is borrowed from the pool, for everything or only to read.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::host::{Host, Idle};
use crate::session::{ReadSession, Session};

/// A session that returns to its pool when it is dropped.
pub struct Pooled {
    host: Arc<Host>,
    /// Empty only while it is dropped.
    loan: Option<(Idle, OwnedSemaphorePermit)>,
}

impl Pooled {
    pub(super) fn new(host: Arc<Host>, permit: OwnedSemaphorePermit, loan: Idle) -> Self {
        Self {
            host,
            loan: Some((loan, permit)),
        }
    }
}

impl Deref for Pooled {
    type Target = Session;

    fn deref(&self) -> &Session {
        match &self.loan {
            Some((loan, _)) => &loan.session,
            None => unreachable!("only `drop` takes the session away"),
        }
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Session {
        match &mut self.loan {
            Some((loan, _)) => &mut loan.session,
            None => unreachable!("only `drop` takes the session away"),
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some((loan, permit)) = self.loan.take() {
            // In this order: the task that gets the permit finds the session.
            self.host.put(Idle {
                since: Instant::now(),
                ..loan
            });
            self.host.release(permit);
        }
    }
}

/// A [`Pooled`] that can only read.
pub struct ReadPooled(Pooled);

impl From<Pooled> for ReadPooled {
    fn from(pooled: Pooled) -> Self {
        Self(pooled)
    }
}

impl Deref for ReadPooled {
    type Target = ReadSession;

    fn deref(&self) -> &ReadSession {
        &self.0
    }
}

impl DerefMut for ReadPooled {
    fn deref_mut(&mut self) -> &mut ReadSession {
        &mut self.0
    }
}
