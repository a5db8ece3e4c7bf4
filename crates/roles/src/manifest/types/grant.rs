//! Privileges on objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::model::{ObjectType, Privilege};

/// Whether something must be there or must not.
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
    /// Which privileges.
    pub privileges: Vec<Privilege>,
    /// On what.
    #[serde(alias = "on")]
    pub object: Object,
    /// `absent`: the role must not hold these privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may pass the privileges on. Unset: authoritative mode takes the right to do so from roles that it
    /// manages, the other modes warn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// What a grant is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// Kind of object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Its schema, for kinds that live in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Its name, `*` for all of that kind in the schema; a function with its argument types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With `*`: names (or patterns with `*`) that are not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Only these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}
