//! Roles, their passwords and their retirement.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

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
