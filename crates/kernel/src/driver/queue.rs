//! The way into a controller's queue, and what is known of who waits there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc;

use crate::telemetry::metrics::{ControllerMetrics, Queued, Running};
use crate::watch::references::Key;

/// A handle on the queue. Clones are handles on the same queue.
#[derive(Clone)]
pub(super) struct Queue {
    requests: mpsc::UnboundedSender<Key>,
    /// Who waits, and since when. An object waits at most once, however often it was woken.
    waiting: Arc<Mutex<HashMap<Key, Queued>>>,
    metrics: ControllerMetrics,
}

impl Queue {
    /// A queue and its other end.
    pub(super) fn new(metrics: ControllerMetrics) -> (Self, mpsc::UnboundedReceiver<Key>) {
        let (requests, receiver) = mpsc::unbounded();
        (
            Self {
                requests,
                waiting: Arc::default(),
                metrics,
            },
            receiver,
        )
    }

    /// Asks for a pass over the object.
    pub(super) fn wake(&self, key: Key) {
        let queued = || self.metrics.queued();
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(key.clone())
            .or_insert_with(queued);
        // A closed queue means that the controller has stopped: nobody is left to wake.
        drop(self.requests.unbounded_send(key));
    }

    /// A pass begins. A retry was not woken, so it comes from nowhere.
    pub(super) fn started(&self, key: &Key) -> Running {
        self.leave(key).unwrap_or_else(|| self.metrics.queued()).started()
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &Key) {
        drop(self.leave(key));
    }

    fn leave(&self, key: &Key) -> Option<Queued> {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key)
    }
}
