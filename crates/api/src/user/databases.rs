//! Databases, schemas, and the privileges of a role in them.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CLOSED_SCHEMAS;
use crate::schema::set_of_names;

/// A privilege, or a group of privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Privilege {
    All,
    #[serde(rename = "ALL PRIVILEGES")]
    AllPrivileges,
    Connect,
    Create,
    Temporary,
    Temp,
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
    References,
    Trigger,
    Usage,
    Execute,
    Read,
    Write,
    Owner,
}

/// A database and the role's privileges in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// Name of the database.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Whether the role owns the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<bool>,
    /// Like `spec.privileges`, for this database. Table privileges apply to the listed schemas, or to `public`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub privileges: Vec<Privilege>,
    /// Schemas with privileges of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".into()]),
        validation = Rule::new("self.all(s, !s.name.startsWith(\"pg_\") && !(s.name in [\"information_schema\",\"_stanchion\"]))")
            .message(CLOSED_SCHEMAS),
    )]
    pub schemas: Vec<Schema>,
    /// Extensions to create in the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub extensions: Vec<String>,
}

/// A schema and the role's privileges in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    /// Name of the schema.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Whether to create the schema if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<bool>,
    /// Privileges in this schema. Defaults to those of the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// Owners whose future objects the privileges also apply to. Defaults to the owners of the schema and of the
    /// database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub default_privileges_for_roles: Vec<String>,
}

/// Options for creating a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDatabase {
    /// Whether to create the database if it does not exist.
    #[serde(default)]
    pub enabled: bool,
    /// Whether the role owns the database.
    #[serde(default)]
    pub owner: bool,
    /// Template database. Defaults to the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub template: Option<String>,
    /// Extensions to create in the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub extensions: Vec<String>,
    /// Schemas to create in the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    #[x_kube(
        validation = Rule::new("self.all(s, !s.startsWith(\"pg_\") && !(s in [\"information_schema\",\"_stanchion\"]))")
            .message(CLOSED_SCHEMAS),
    )]
    pub schemas: Vec<String>,
    /// Revokes CONNECT and TEMPORARY on the database and CREATE on the schema `public` from PUBLIC.
    #[serde(default)]
    pub revoke_public: bool,
    /// What happens to the database when the object is deleted.
    #[serde(default)]
    pub deletion_policy: DatabaseDeletion,
}

/// What happens to a database that the operator created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DatabaseDeletion {
    #[default]
    Retain,
    Delete,
}
