//! Databases, schemas, and the words for what a role may do in them.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::set_of_names;

/// A privilege, or a bundle of them.
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

/// One database and what the role may do in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// Name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The role owns the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<bool>,
    /// As `spec.privileges`, for this database; table words apply to the listed schemas, or to `public`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub privileges: Vec<Privilege>,
    /// Schemas with words of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub schemas: Vec<Schema>,
    /// Extensions that shall be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub extensions: Vec<String>,
}

/// One schema and what the role may do in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    /// Name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Makes the schema when it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<bool>,
    /// Words for this schema; without any, those of the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// The owners whose future objects the words also apply to; the schema's and the database's by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub default_privileges_for_roles: Vec<String>,
}

/// Makes a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDatabase {
    /// Whether to.
    #[serde(default)]
    pub enabled: bool,
    /// The role owns it.
    #[serde(default)]
    pub owner: bool,
    /// The template; the server's default without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub template: Option<String>,
    /// Extensions to make in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub extensions: Vec<String>,
    /// Schemas to make in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub schemas: Vec<String>,
    /// Takes CONNECT and TEMPORARY from PUBLIC, and CREATE on the schema `public`.
    #[serde(default)]
    pub revoke_public: bool,
    /// What becomes of the database when the object is deleted.
    #[serde(default)]
    pub deletion_policy: DatabaseDeletion,
}

/// What becomes of a database that the operator made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DatabaseDeletion {
    #[default]
    Retain,
    Delete,
}
