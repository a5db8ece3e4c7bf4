//! Leader election on a `coordination.k8s.io` Lease, and the fence that goes with it.
//!
//! Two replicas that both believe to lead would undo each other's work. Three things keep that
//! from happening, and each is one file:
//!
//! - `record`: who may write the Lease, decided from what was seen and for how long it
//!   has not changed. No timestamp of another machine is ever compared with our clock.
//! - [`Elector`]: writes the Lease with its resourceVersion, so that of two who try only one
//!   succeeds, and runs the controllers only while it is renewed.
//! - [`Fence`]: stops the writes of whatever outlives the lease: a spawned task, a request that
//!   is being retried, a process that was paused and comes back a minute later.

mod elector;
mod fence;
mod leadership;
mod record;
mod settings;

use crate::rbac::Rule;

pub use elector::{Elector, Term};
pub use fence::{Fence, FenceService};
pub use leadership::{Leadership, NotLeading};
pub use settings::{Identity, LeaseSettings, Timings, TimingsError};

/// What [`Elector`] may do in the namespace of its Lease.
pub fn rules() -> Vec<Rule> {
    vec![Rule::new(
        "coordination.k8s.io",
        &["leases"],
        // One that stands by watches it, to be there at once when it is given back.
        &["get", "list", "watch", "create", "update"],
    )]
}
