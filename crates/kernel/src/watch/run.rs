//! Runs a watch forever, and reports its state to `/readyz`.
//!
//! kube resumes a broken watch where it stopped, without a new list, and does not report it: a quiet kind has no events
//! that would show it. But while it cannot resume, it returns an error at least once in [`RECOVERY_TIMEOUT`]. So no error for
//! that long means that the watch works again.

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event};
use tokio::time::timeout;
use tracing::warn;

use crate::problem::chain;

/// Longer than the longest pause between two attempts (7.5 s) and an attempt that hangs (30 s).
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(50);

/// The state of the watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A list is needed or running; only its end helps.
    Listing,
    /// Everything was received, and every change will be.
    Running,
    /// Everything was received, but changes may be late.
    Interrupted,
}

/// Passes every event to `handle`. Calls `synced` with the current error, or with `None`.
pub(crate) async fn run_watch<K>(
    name: &str,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    synced: impl Fn(Option<String>),
    mut handle: impl FnMut(Event<K>),
) {
    let mut events = std::pin::pin!(events);
    let mut state = State::Listing;
    loop {
        let recovery_timeout = if state == State::Interrupted {
            RECOVERY_TIMEOUT
        } else {
            Duration::MAX
        };
        match timeout(recovery_timeout, events.next()).await {
            Ok(None) => return,
            Ok(Some(Err(error))) => {
                let why = chain(&error);
                warn!(watch = name, error = why, "watch interrupted");
                synced(Some(why));
                if state == State::Running {
                    state = State::Interrupted;
                }
            }
            Ok(Some(Ok(event))) => {
                let next = match &event {
                    Event::Init | Event::InitApply(_) => State::Listing,
                    Event::InitDone | Event::Apply(_) | Event::Delete(_) => State::Running,
                };
                handle(event);
                if next == State::Running && state != State::Running {
                    synced(None);
                }
                state = next;
            }
            Err(_) => {
                synced(None);
                state = State::Running;
            }
        }
    }
}
