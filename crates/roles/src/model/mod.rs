//! The vocabulary that the manifest, the database and the plan share.
//!
//! Nothing here reads or writes anything. A privilege, an object type and a role's attributes mean the same
//! thing on both sides of the diff, so they are the same type on both sides.

mod object;
mod privilege;
mod role;
mod signature;

pub use object::{KindSpec, ObjectType};
pub use privilege::{Privilege, Privileges};
pub use role::{Attribute, RoleState};
pub use signature::Signature;

/// The name by which a manifest means every role, now and later.
pub const PUBLIC: &str = "PUBLIC";
