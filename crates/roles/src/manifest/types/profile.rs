//! Profiles and the schemas that they are bound to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DefaultPrivilegeGrant, Ensure, is_default};
use crate::model::{ObjectType, Privilege};

/// A template for one role per schema.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// LOGIN. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<bool>,
    /// INHERIT. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// Privileges of the role on the schema and the objects in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<ProfileGrant>,
    /// Privileges of the role on future objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_privileges: Vec<DefaultPrivilegeGrant>,
    /// ALTER ROLE … SET; `{schema}` and `{profile}` are replaced in the values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// COMMENT ON ROLE of the generated roles; `{schema}` and `{profile}` are replaced, and an empty text sets no
    /// comment. Default: `Generated from profile '{profile}' for schema '{schema}'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Like `roles[].exclusive`, for the generated roles.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A grant of a profile. Its schema is the one that the profile is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileGrant {
    /// The privileges to grant.
    pub privileges: Vec<Privilege>,
    /// The object of the grant.
    #[serde(alias = "on")]
    pub object: ProfileObject,
    /// Only `present`: a profile cannot revoke.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// managed roles, and the other modes warn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// An object in the schema that a profile is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileObject {
    /// Kind of object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Name of the object, or `*` for all of that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With `*`: names, or patterns with `*`, to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Restricts the grant to these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

/// A schema that must exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schema {
    /// Name of the schema.
    pub name: String,
    /// The profiles that become roles for this schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Name pattern of these roles; must contain `{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_pattern: Option<String>,
    /// Owner of the schema. Default: `default_owner`; without either the owner does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}
