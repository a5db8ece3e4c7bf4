//! What wakes an object: its own change, and a change of what it owns or refers to.
//!
//! [`primary`]: whether a change of the object itself matters. [`dependencies`]: which objects have read a Secret.
//! [`related`]: the watches of other kinds, as metadata and without a cache, shared by all controllers. `run`:
//! whether a watch works. [`enqueue`]: enqueues other objects from a pass.

pub mod dependencies;
pub mod enqueue;
pub mod primary;
pub mod related;
mod run;

use std::time::Duration;

use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};

pub(crate) use run::run_watch;

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
