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
    /// What the role may do with the schema and the objects in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<ProfileGrant>,
    /// What the role may do with objects that do not exist yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_privileges: Vec<DefaultPrivilegeGrant>,
    /// ALTER ROLE … SET; `{schema}` and `{profile}` are replaced in values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// COMMENT ON ROLE of the generated roles; `{schema}` and `{profile}` are replaced, and an empty text is no
    /// comment. Default: `Generated from profile '{profile}' for schema '{schema}'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// As `roles[].exclusive`, for the generated roles.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A grant of a profile: its schema is the one that the profile is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileGrant {
    /// Which privileges.
    pub privileges: Vec<Privilege>,
    /// On what.
    #[serde(alias = "on")]
    pub object: ProfileObject,
    /// Only `present`: a template cannot say what must not be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may pass the privileges on. Unset: authoritative mode takes the right to do so from roles that it
    /// manages, the other modes warn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// An object of the schema that a profile is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileObject {
    /// Kind of object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Its name, or `*` for all of that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With `*`: names (or patterns with `*`) that are not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Only these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

/// A schema to keep in existence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schema {
    /// Its name.
    pub name: String,
    /// The profiles that become roles for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// How these roles are named; must contain `{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_pattern: Option<String>,
    /// Its owner. Default: `default_owner`; without either the owner is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}
