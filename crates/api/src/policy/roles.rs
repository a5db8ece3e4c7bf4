//! Roles, schemas and memberships in a policy.
//!
//! The engine has twins of these types (`crates/roles/src/manifest/types`). The schema of a CRD needs limits and CEL rules
//! that a manifest does not have, and the engine does not depend on Kubernetes.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::connection::SecretName;

/// A source of logins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthProvider {
    /// Type of the source.
    #[serde(rename = "type")]
    pub kind: AuthProviderType,
    /// Cloud SQL and `AlloyDB`: the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `AlloyDB`: the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// RDS: the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Azure AD: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Supabase: the project's reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_ref: Option<String>,
    /// `PlanetScale`: the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

/// Types of sources of logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A schema to create if missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schema {
    /// Name of the schema.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The profiles that become roles for this schema.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub profiles: Vec<String>,
    /// Name pattern of these roles. It must contain `{profile}`. Default: the policy's `role_pattern`, then
    /// `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub role_pattern: Option<String>,
    /// Owner of the schema. Default: `default_owner`. Without either, the operator does not change the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub owner: Option<String>,
}

/// A role to create if missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(clippy::struct_excessive_bools)] // PostgreSQL's own attributes.
pub struct Role {
    /// Name of the role.
    #[schemars(length(min = 1, max = 63))]
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
    /// CONNECTION LIMIT. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i32>,
    /// COMMENT ON ROLE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub comment: Option<String>,
    /// Source of the password. Requires `login: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// When the password expires: `2030-01-01T00:00:00Z`, or with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub password_valid_until: Option<String>,
    /// Settings for ALTER ROLE … SET, in all databases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<String, String>,
    /// The role is managed elsewhere: the policy neither creates nor alters it, but manages its privileges.
    #[serde(default)]
    pub external: bool,
    /// Keeps privileges of this role that the policy does not declare.
    #[serde(default)]
    pub preserve_undeclared_grants: bool,
    /// Revokes everything that the role has in this database and the policy does not declare.
    #[serde(default)]
    pub exclusive: bool,
}

/// Source of a password: `secretRef` or `generate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Password {
    /// A Secret in the same namespace with the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// The key in that Secret. Default: the role's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
    /// The operator generates the password and stores it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generate>,
}

/// Options of a generated password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Generate {
    /// Number of characters, 16 to 128. Default: 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// Name of the Secret with the password. Default: `{policy}-pgr-{role}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: Option<String>,
    /// The key in that Secret. Default: `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
}

/// The members of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct Membership {
    /// The role that gets members.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// Members of the role.
    #[schemars(length(max = 512))]
    pub members: Vec<Member>,
    /// Removes undeclared members of a predefined or external role. Undeclared members of declared roles are always
    /// removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
}

/// A member of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Name of the member. The policy need not declare it.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Whether the member has the role's privileges without SET ROLE (PostgreSQL 16 and later). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// Whether the member may add and remove members. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    /// Whether the member may SET ROLE (PostgreSQL 16 and later). If unset, the option is not managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}

/// A role to drop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retirement {
    /// Name of the role.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// The role that receives the objects which the retired role owns in this database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub reassign_owned_to: Option<String>,
    /// Drops what the role still owns in this database, and its privileges there.
    #[serde(default)]
    pub drop_owned: bool,
    /// Terminates the role's sessions after it is dropped.
    #[serde(default)]
    pub terminate_sessions: bool,
}
