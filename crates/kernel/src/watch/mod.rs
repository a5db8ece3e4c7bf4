//! What wakes an object: its own change, and a change of what it owns or refers to.
//!
//! Five files, five questions. [`primary`]: has this object itself changed in a way that matters?
//! [`references`]: which objects read this Secret? [`related`]: the watches of other kinds, as metadata
//! and without a cache, shared by all controllers. `attend`: does a watch run at all?
//! [`bells`]: whom does a pass wake?

mod attend;
pub mod bells;
pub mod primary;
pub mod references;
pub mod related;

use std::time::Duration;

use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};

pub(crate) use attend::attend;

/// How a watch that broke is opened again. The pauses stay short: they bound how long a change goes unnoticed after the
/// API server is back. One that breaks again and again is not opened faster and faster.
pub(crate) fn backoff() -> ResetTimerBackoff<Pauses> {
    ResetTimerBackoff::new(Pauses(SHORTEST_PAUSE), Duration::from_mins(1))
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Pauses that double up to a limit, each with up to its half in addition, so that watches which broke together do not
/// come back together.
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

/// The label on everything that the operator makes, and the selector of its watches.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stanchion");

/// A kind, beside its own, that wakes a controller's objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The kind.
    pub resource: ApiResource,
    /// Whether only objects that carry [`MANAGED_BY`] are watched. A kind of which users' objects are
    /// referred to must be watched whole.
    pub only_ours: bool,
    /// Whether the kind is namespaced; cluster-scoped kinds are watched whole whatever the operator's scope.
    pub namespaced: bool,
}

impl Watch {
    /// Objects of the user's that ours refer to by name: they wake whoever read them.
    pub fn referred<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            only_ours: false,
            namespaced: true,
        }
    }

    /// Children that the controller makes: they wake their owner.
    pub fn owned<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            only_ours: true,
            ..Self::referred::<K>()
        }
    }

    /// A cluster-scoped kind that ours refer to by name.
    pub fn cluster_wide<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            namespaced: false,
            ..Self::referred::<K>()
        }
    }
}
