//! The types that the manifest, the database and the plan share.
//!
//! Nothing here does I/O. A privilege, an object type and a role's attributes mean the same on both sides of the diff,
//! so both sides use the same types.

mod object;
mod privilege;
mod role;
mod signature;

pub use object::{KindSpec, ObjectType};
pub use privilege::{Privilege, Privileges};
pub use role::{Attribute, RoleState};
pub(crate) use signature::Signature;

/// The name in a manifest for all roles, present and future.
pub const PUBLIC: &str = "PUBLIC";
