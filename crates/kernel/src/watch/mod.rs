//! What wakes an object: its own change, and a change of what it owns or refers to.
//!
//! [`primary`]: whether a change of the object itself matters. [`dependencies`]: which objects have read a Secret.
//! [`related`]: the watches of other kinds, as metadata and without a cache, shared by all controllers.
//! [`enqueue`]: enqueues other objects from a pass.

pub mod dependencies;
pub mod enqueue;
pub mod primary;
pub mod related;

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event};
use tokio::time::timeout;
use tracing::warn;

use crate::problem::chain;

/// The backoff of broken watches. The delays stay short: they limit how long a change goes unnoticed after the API
/// server is back. A watch that keeps breaking is not opened faster and faster.
pub(crate) fn backoff() -> ResetTimerBackoff<Pauses> {
    ResetTimerBackoff::new(Pauses(SHORTEST_PAUSE), Duration::from_mins(1))
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Delays that double up to a limit, each with up to half of it in addition, so that watches which broke together do
/// not reconnect together.
pub(crate) struct Pauses(Duration);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0;
        self.0 = pause.saturating_mul(2).min(LONGEST_PAUSE);
        Some(pause + pause.mul_f64(crate::ambient::fraction() / 2.0))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = SHORTEST_PAUSE;
    }
}

/// The label on everything that the operator creates, and the selector of its watches.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stanchion");

/// A kind, in addition to its own, whose changes wake a controller's objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The kind.
    pub resource: ApiResource,
    /// Whether only objects with [`MANAGED_BY`] are watched. A kind whose user-created objects are referred to must be
    /// watched completely.
    pub only_ours: bool,
    /// Whether the kind is namespaced; cluster-scoped kinds are watched completely, whatever the operator's scope.
    pub namespaced: bool,
}

impl Watch {
    /// Users' objects that our objects refer to by name: they wake the objects that have read them.
    pub fn referred<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            only_ours: false,
            namespaced: true,
        }
    }

    /// Children that the controller creates: they wake their owner.
    pub fn owned<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            only_ours: true,
            ..Self::referred::<K>()
        }
    }

    /// A cluster-scoped kind that our objects refer to by name.
    pub fn cluster_wide<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            namespaced: false,
            ..Self::referred::<K>()
        }
    }
}

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

/// Runs a watch forever. Passes every event to `handle`, and calls `synced` with the current error, or with `None`: it
/// reports to `/readyz` whether the watch works.
///
/// kube resumes a broken watch where it stopped, without a new list, and does not report it: a quiet kind has no events
/// that would show it. But while it cannot resume, it returns an error at least once in [`RECOVERY_TIMEOUT`]. So no
/// error for that long means that the watch works again.
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
