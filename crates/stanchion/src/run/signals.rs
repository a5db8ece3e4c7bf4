//! Signals: the first one starts a graceful shutdown, the second one ends the process.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A token that SIGTERM or SIGINT cancels. Called first: the first process of a container has no default action for a
/// signal, and would ignore it before a handler is installed.
pub(crate) fn shutdown() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let shutdown = token.clone();
    tokio::spawn(async move {
        let mut asked = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        asked().await;
        info!("shutting down: running passes get a moment to finish, and nothing new starts");
        token.cancel();
        asked().await;
        warn!("aborted by a second signal");
        std::process::exit(1);
    });
    Ok(shutdown)
}
