//! The cache of children, for controllers with many children per object.
//!
//! A read before each write would double the requests of such a controller, and a restart would read every child again.
//! So the watch of a family receives complete objects and keeps a summary of each: the hash of its intent, a
//! [digest](owned) of the current values of our fields, and what its owner needs to know ([`Member::Kept`]). The kernel
//! [decides](decide) from that summary whether a child has to be written, and wakes the owner when the summary changes,
//! not on every change of the child.

mod decide;
mod member;
mod owned;
mod store;
mod watch;

pub use decide::{Step, decide};
pub use member::{Member, Rollout};
pub use store::{Child, Families, Family};
pub use watch::Kinds;
pub(crate) use watch::Setting;
