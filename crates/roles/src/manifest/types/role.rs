//! Roles, from the first day to the last.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// A role to keep in existence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Its name.
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
    /// CONNECTION LIMIT. Default: -1, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i32>,
    /// COMMENT ON ROLE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Where the password comes from. Needs `login: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// When the password expires: `2030-01-01T00:00:00Z`, or with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_valid_until: Option<String>,
    /// ALTER ROLE … SET, for all databases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Made elsewhere: neither created nor altered, but its privileges are managed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub external: bool,
    /// Keeps privileges of this role that the manifest does not mention.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preserve_undeclared_grants: bool,
    /// The manifest says everything about this role: what it holds in unmentioned schemas, on columns and on
    /// other objects of this database, and its memberships in unmentioned roles, is revoked, not only reported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// Where a password comes from. Exactly one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Password {
    /// Command line: the environment variable that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// Operator: the Secret that holds it.
    #[serde(default, rename = "secretRef", skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// Operator: the key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// Operator: make one and keep it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<GeneratePassword>,
}

/// A Secret of the policy's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Its name.
    pub name: String,
}

/// A password that the operator makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratePassword {
    /// Number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// The Secret to keep it in.
    #[serde(default, rename = "secretName", skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
}

/// A role to drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retirement {
    /// The role.
    pub role: String,
    /// Who gets what it owns in this database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reassign_owned_to: Option<String>,
    /// Drops what it still owns in this database, and its privileges there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drop_owned: bool,
    /// Ends its sessions once it is gone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminate_sessions: bool,
}
