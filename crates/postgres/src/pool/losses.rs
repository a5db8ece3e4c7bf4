//! Servers that have answered and no longer do.
//!
//! The first connection that is lost is a sign for everything that depends on the server: a controller that checks its
//! servers from time to time would otherwise report a lost server as connected until its next check.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

/// How many losses a listener may be behind. A process knows fewer servers than this.
const BEHIND: usize = 1024;

/// Where losses are announced. Clones share it.
#[derive(Clone)]
pub(super) struct Losses(broadcast::Sender<Arc<str>>);

impl Default for Losses {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND).0)
    }
}

impl Losses {
    /// A server, as `host:port`, is lost.
    pub(super) fn announce(&self, server: &str) {
        tracing::debug!(server, "the server does not answer any more");
        // It fails only without a listener.
        let _ = self.0.send(server.into());
    }

    pub(super) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// Receives the servers that are lost from now on.
pub struct Listener(broadcast::Receiver<Arc<str>>);

impl Listener {
    /// The next one, as `host:port` in lower case. It never returns after the pools are gone.
    pub async fn next(&mut self) -> Arc<str> {
        loop {
            match self.0.recv().await {
                Ok(server) => return server,
                // The oldest losses are skipped: the next regular check finds them.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
