//! Roles, their passwords and members, and roles to drop.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// A source of logins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

// `P` is the source of the password, which differs: only a file can name an environment variable.
/// A role to create if missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Role")]
pub struct Role<P> {
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
    pub password: Option<P>,
    /// When the password expires: `2030-01-01T00:00:00Z`, or with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub password_valid_until: Option<String>,
    /// Settings for ALTER ROLE … SET, in all databases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<String, String>,
    /// The role is managed elsewhere: the policy neither creates nor alters it, but manages its privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub external: bool,
    /// Keeps privileges of this role that the policy does not declare.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub preserve_undeclared_grants: bool,
    /// Revokes everything that the role has in this database and the policy does not declare.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub exclusive: bool,
}

impl<P> Role<P> {
    /// The same role, with the source of its password in another format.
    pub fn map_password<Q>(self, source: impl FnOnce(P) -> Q) -> Role<Q> {
        Role {
            name: self.name,
            login: self.login,
            superuser: self.superuser,
            createdb: self.createdb,
            createrole: self.createrole,
            inherit: self.inherit,
            replication: self.replication,
            bypassrls: self.bypassrls,
            connection_limit: self.connection_limit,
            comment: self.comment,
            password: self.password.map(source),
            password_valid_until: self.password_valid_until,
            config: self.config,
            external: self.external,
            preserve_undeclared_grants: self.preserve_undeclared_grants,
            exclusive: self.exclusive,
        }
    }
}

/// A Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretName {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A password that the operator generates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratePassword {
    /// Number of characters, 16 to 128. Default: 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// Name of the Secret with the password. Default: `{policy}-pgr-{role}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: Option<String>,
    /// Key in the Secret. Default: `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
}

/// The members of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Membership {
    /// The role that gets members.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// Members of the role.
    #[schemars(length(max = 512))]
    pub members: Vec<Member>,
    /// Removes undeclared members of a predefined or external role. Undeclared members of declared roles are always
    /// removed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A member of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retirement {
    /// Name of the role.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// The role that receives the objects which the retired role owns in this database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub reassign_owned_to: Option<String>,
    /// Drops what the role still owns in this database, and its privileges there.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub drop_owned: bool,
    /// Terminates the role's sessions after it is dropped.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub terminate_sessions: bool,
}
