//! Servers that answered and do not answer any more.
//!
//! One connection that is lost, whoever has it, is a sign for everybody who depends on the server: a controller that asks
//! its servers now and then would otherwise believe in one that is gone until it asks again.

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
        // Without a listener there is nobody to tell.
        let _ = self.0.send(server.into());
    }

    pub(super) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// Hears of the servers that are lost from now on.
pub struct Listener(broadcast::Receiver<Arc<str>>);

impl Listener {
    /// The next one, as `host:port` in lower case. It does not return any more after the pools are gone.
    pub async fn next(&mut self) -> Arc<str> {
        loop {
            match self.0.recv().await {
                Ok(server) => return server,
                // The oldest are forgotten. Those who depend on them ask by themselves, later.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
