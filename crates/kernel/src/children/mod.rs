//! The cache of children, for controllers with many children per object.
//!
//! A read before each write would double the requests of such a controller, and a restart would read every child again.
//! So the watch of a family receives complete objects and keeps a summary of each: the hash of its intent, a
//! [digest](owned) of the current values of our fields, and what its owner needs to know ([`ChildKind::Summary`]). The kernel
//! [decides](decide) from that summary whether a child has to be written, and wakes the owner when the summary changes,
//! not on every change of the child.

mod cache;
mod changes;
mod decide;
mod kind;
mod owned;
mod watch;

pub use cache::{Child, ChildCache, ChildCaches};
pub use changes::Children;
pub use decide::{ChildChange, decide};
pub use kind::{ChildKind, Rollout};
pub use watch::ChildKinds;
pub(crate) use watch::WatchContext;
