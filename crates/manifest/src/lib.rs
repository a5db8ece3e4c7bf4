//! Roles, privileges and memberships as they are declared, once for both formats: the file of `stanchion roles` and the
//! `spec` of a `PostgresPolicy`.
//!
//! The limits (lengths, counts) and the CEL rules are for the CRD, whose size and cost the API server bounds. The engine
//! leaves them out of the JSON schema of a file and checks the same rules itself. This crate depends neither on
//! Kubernetes nor on PostgreSQL.

mod grants;
mod object;
mod privilege;
mod roles;

pub use grants::{
    DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, Ensure, Grant, Object, Profile,
    ProfileGrant, ProfileObject, Schema, ScopeType,
};
pub use object::{KindSpec, ObjectType};
pub use privilege::{Privilege, Privileges};
pub use roles::{
    AuthProvider, AuthProviderType, GeneratePassword, Member, Membership, Retirement, Role, SecretName,
};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
