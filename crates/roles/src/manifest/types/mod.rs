//! The types of the manifest format.

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

/// A policy manifest. Every field is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Owner of declared schemas and of default privileges that name no owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_owner: Option<String>,
    /// Name pattern of generated roles, unless a schema sets its own. Default: `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_pattern: Option<String>,
    /// Allows adopt mode to change the owner of existing schemas to the declared owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_schema_owner_transfers: bool,
    /// Sources of logins. Documentation only; they have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auth_providers: Vec<AuthProvider>,
    /// Templates: each profile of a schema becomes a role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Profile>,
    /// Schemas that must exist, with the profiles that are bound to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<Schema>,
    /// Roles that must exist, with all of their attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// Privileges on existing objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Privileges on future objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_privileges: Vec<DefaultPrivilege>,
    /// Memberships in roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Membership>,
    /// Roles to drop. No other field ever drops a role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retirements: Vec<Retirement>,
}
