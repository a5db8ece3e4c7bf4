//! The manifest of `stanchion roles`, and where the passwords of its roles come from. The parts that a `PostgresPolicy`
//! declares in the same way are in `stanchion_manifest`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use stanchion_manifest::{
    AuthProvider, AuthProviderType, DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, Ensure,
    GeneratePassword, Grant, Member, Membership, Object, Profile, ProfileGrant, ProfileObject, Retirement,
    Schema, ScopeType, SecretName,
};

use crate::model::ObjectType;

/// A role that must exist.
pub type Role = stanchion_manifest::Role<Password>;

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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
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

/// Source of a password. Set exactly one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Password {
    /// Command line: the environment variable that has the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// Operator: the Secret that has the password.
    #[serde(default, rename = "secretRef", skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// Operator: the key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// Operator: generates a password and keeps it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<GeneratePassword>,
}

/// The schema that an object is, or is in.
pub(crate) fn schema_of(object: &Object) -> Option<&str> {
    match object.kind {
        ObjectType::Schema => object.name.as_deref(),
        _ => object.schema.as_deref(),
    }
}
