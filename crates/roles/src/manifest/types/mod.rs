//! The types of the manifest format: the manifest, roles, memberships. Privileges are in `privileges`.
//!
//! `PostgresPolicy` has twins of these types (`crates/api/src/policy`): the schema of a CRD needs limits and CEL rules that a
//! manifest does not have, and this crate does not depend on Kubernetes.

mod privileges;

pub use privileges::{
    DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, Ensure, Grant, Object, Profile,
    ProfileGrant, ProfileObject, Schema, ScopeType,
};

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

/// A role that must exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Name of the role.
    pub name: String,
    /// LOGIN. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<bool>,
    /// SUPERUSER. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superuser: Option<bool>,
    /// CREATEDB. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub createdb: Option<bool>,
    /// CREATEROLE. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub createrole: Option<bool>,
    /// INHERIT. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// REPLICATION. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<bool>,
    /// BYPASSRLS. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypassrls: Option<bool>,
    /// CONNECTION LIMIT. Default: -1, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i32>,
    /// COMMENT ON ROLE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Source of the password. Needs `login: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// Expiry of the password, such as `2030-01-01T00:00:00Z`, or with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_valid_until: Option<String>,
    /// ALTER ROLE … SET, for all databases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// The role is created elsewhere: it is neither created nor altered, but its privileges are managed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub external: bool,
    /// Keeps privileges of this role that the manifest does not mention.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preserve_undeclared_grants: bool,
    /// The manifest is complete for this role: privileges in unmentioned schemas, on columns and on other objects of
    /// this database, and memberships in unmentioned roles, are revoked instead of only reported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// Source of a password. Set exactly one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Password {
    /// Command line: the environment variable that has the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// Operator: the Secret that has the password.
    #[serde(default, rename = "secretRef", skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// Operator: the key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// Operator: generates a password and keeps it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<GeneratePassword>,
}

/// A Secret in the policy's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
}

/// A password that the operator generates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratePassword {
    /// Number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// Name of the Secret for the password.
    #[serde(default, rename = "secretName", skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
}

/// A role to drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retirement {
    /// Name of the role.
    pub role: String,
    /// Role that gets the objects that the role owns in this database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reassign_owned_to: Option<String>,
    /// Drops the objects that the role still owns in this database, and its privileges there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drop_owned: bool,
    /// Terminates the role's sessions after it is dropped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminate_sessions: bool,
}

/// The members of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Membership {
    /// The role that has members.
    pub role: String,
    /// The members of the role.
    pub members: Vec<Member>,
    /// Removes other members of a predefined or external role. Other members of declared roles are always removed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A member of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Name of the member. The manifest need not declare it.
    pub name: String,
    /// Whether the member has the role's privileges without SET ROLE (PostgreSQL 16 and newer). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// Whether the member may add and remove members. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    /// Whether the member may SET ROLE (PostgreSQL 16 and newer). If unset, the option is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}

/// A source of logins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthProvider {
    /// The kind of source.
    #[serde(rename = "type")]
    pub kind: AuthProviderType,
    /// Project of Cloud SQL or `AlloyDB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Cluster of `AlloyDB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Region of RDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Tenant of Azure AD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Project reference of Supabase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_ref: Option<String>,
    /// Organization of `PlanetScale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

/// The known sources of logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AuthProviderType {
    CloudSqlIam,
    AlloydbIam,
    RdsIam,
    AzureAd,
    Supabase,
    PlanetScale,
}
