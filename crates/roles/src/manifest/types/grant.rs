//! Grants: privileges on existing objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::model::{ObjectType, Privilege};

/// Whether something must exist or must not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Ensure {
    #[default]
    Present,
    Absent,
}

/// Privileges of a role on an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// The role, or `PUBLIC`.
    pub role: String,
    /// The privileges to grant.
    pub privileges: Vec<Privilege>,
    /// The object of the grant.
    #[serde(alias = "on")]
    pub object: Object,
    /// `absent`: the role must not hold these privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// managed roles, and the other modes warn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// The object of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// Kind of object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Schema of the object, for kinds that are in a schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the object, or `*` for all of that kind in the schema. A function includes its argument types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With `*`: names, or patterns with `*`, to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Restricts the grant to these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}
