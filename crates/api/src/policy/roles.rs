//! Roles, schemas and memberships of a policy: the manifest's words.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::connection::SecretName;

/// A source of logins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthProvider {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: AuthProviderType,
    /// Cloud SQL, `AlloyDB`: the project.
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

/// The known sources of logins.
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

/// A schema to keep in existence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schema {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The profiles that become roles for it.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub profiles: Vec<String>,
    /// How these roles are named; must contain `{profile}`. Default: the policy's, else `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub role_pattern: Option<String>,
    /// Its owner. Default: `default_owner`; without either the owner is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub owner: Option<String>,
}

/// A role to keep in existence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(clippy::struct_excessive_bools)] // PostgreSQL's own attributes.
pub struct Role {
    /// Its name.
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
    /// CONNECTION LIMIT. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i32>,
    /// COMMENT ON ROLE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub comment: Option<String>,
    /// Where the password comes from. Needs `login: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// When the password expires: `2030-01-01T00:00:00Z`, or with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub password_valid_until: Option<String>,
    /// ALTER ROLE … SET, for all databases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<String, String>,
    /// Made elsewhere: neither created nor altered, but its privileges are managed.
    #[serde(default)]
    pub external: bool,
    /// Keeps privileges of this role that the policy does not mention.
    #[serde(default)]
    pub preserve_undeclared_grants: bool,
    /// The policy says everything about this role: what it holds elsewhere in this database is revoked.
    #[serde(default)]
    pub exclusive: bool,
}

/// Where a password comes from: `secretRef` or `generate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Password {
    /// A Secret of the same namespace that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// The key in that Secret. Default: the role's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
    /// The operator makes it and keeps it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generate>,
}

/// A password that the operator makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Generate {
    /// Number of characters, from 16 to 128. Default: 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// The Secret to keep it in. Default: `{policy}-pgr-{role}`.
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
    /// The role that has members.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// Its members.
    #[schemars(length(max = 512))]
    pub members: Vec<Member>,
    /// For predefined and external roles: other members are removed. Declared roles are always so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Its name. It need not be declared.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Has the role's privileges without SET ROLE (PostgreSQL 16 and newer). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// May add and remove members. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    /// May SET ROLE (PostgreSQL 16 and newer). Unset: not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}

/// A role to drop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retirement {
    /// The role.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// Who gets what it owns in this database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub reassign_owned_to: Option<String>,
    /// Drops what it still owns in this database, and its privileges there.
    #[serde(default)]
    pub drop_owned: bool,
    /// Ends its sessions once it is gone.
    #[serde(default)]
    pub terminate_sessions: bool,
}
