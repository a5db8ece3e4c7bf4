//! The types that the manifest, the database and the plan share.
//!
//! Nothing here does I/O. A privilege, an object type and a role's attributes mean the same on both sides of the diff,
//! so both sides use the same types.

mod role;
mod signature;

pub use role::{Attribute, RoleState};
pub(crate) use signature::Signature;
pub use stanchion_manifest::{KindSpec, ObjectType, Privilege, Privileges};

/// The name in a manifest for all roles, present and future.
pub const PUBLIC: &str = "PUBLIC";
