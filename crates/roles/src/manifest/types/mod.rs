//! The format, type by type.

mod auth_provider;
mod default_privilege;
mod grant;
mod membership;
mod profile;
mod role;

pub use auth_provider::{AuthProvider, AuthProviderType};
pub use default_privilege::{DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, ScopeType};
pub use grant::{Ensure, Grant, Object};
pub use membership::{Member, Membership};
pub use profile::{Profile, ProfileGrant, ProfileObject, Schema};
pub use role::{GeneratePassword, Password, Retirement, Role, SecretRef};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A policy manifest. Everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Owner of declared schemas and of default privileges that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_owner: Option<String>,
    /// How generated roles are named, unless a schema says otherwise. Default: `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_pattern: Option<String>,
    /// Lets adopt mode give existing schemas to their declared owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_schema_owner_transfers: bool,
    /// Where logins come from. For the reader; nothing is done with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auth_providers: Vec<AuthProvider>,
    /// Templates: each profile of a schema becomes a role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Profile>,
    /// Schemas to keep in existence, with the profiles that are bound to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<Schema>,
    /// Roles to keep in existence, with all of their attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// Privileges on objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Privileges on objects that do not exist yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_privileges: Vec<DefaultPrivilege>,
    /// Who is a member of what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Membership>,
    /// Roles to drop: the only way in which a role is ever dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retirements: Vec<Retirement>,
}
