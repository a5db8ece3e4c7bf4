//! Children in numbers: what a controller with twenty children an object knows of each, without asking.
//!
//! A read before each write would double the calls of such a controller, and a restart would read every child
//! once more. So the watch of a family sees whole objects and keeps a line of each: which intent it carries,
//! a [digest](owned) of the fields that are ours as they are now, and what its owner wants to know of its
//! fate ([`Member::Kept`]). From that line it is [decided](decide) whether a child has to be written, and
//! an owner is woken when the line changes, not whenever its child is touched.

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
