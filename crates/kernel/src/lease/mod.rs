//! Leader election on a `coordination.k8s.io` Lease, and the fence that goes with it.
//!
//! Two replicas that both consider themselves the leader would undo each other's work. Three parts prevent that:
//!
//! - `record`: decides who may write the Lease, from what was observed and for how long it has not changed. It never
//!   compares a timestamp of another machine with our clock.
//! - [`Elector`]: writes the Lease with its resourceVersion, so that only one of two candidates succeeds, and runs the
//!   controllers only while it is renewed. After a loss it waits for the SQL statements that the controllers were running.
//! - [`Fence`]: stops writes that outlive the Lease: of a spawned task, of a retried request, of a process that was
//!   paused and resumes a minute later. kubert's lease, which would replace the other two parts, has no fence.

mod elector;
mod fence;
mod leadership;
mod record;
mod settings;
mod settle;

use crate::rbac::Rule;

pub use elector::{Elector, Term};
pub use fence::{Fence, FenceService};
pub use leadership::{Leadership, NotLeading};
pub use settings::{Identity, LeaseSettings, Timings, TimingsError};
pub(crate) use settle::settle;

/// The RBAC rules of [`Elector`] in the namespace of its Lease.
pub fn rules() -> Vec<Rule> {
    vec![Rule::new(
        "coordination.k8s.io",
        &["leases"],
        // A standby replica watches it, to take over at once when it is released.
        &["get", "list", "watch", "create", "update"],
    )]
}
