//! Privileges on objects that do not exist yet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ensure, is_default};
use crate::model::{ObjectType, Privilege};

/// Privileges that new objects of an owner get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefaultPrivilege {
    /// Whose new objects. Default: the schema's owner, `default_owner`, `postgres`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// In which schema. Either this or `scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Everywhere, or in which schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<DefaultPrivilegeScope>,
    /// Who gets what.
    pub grant: Vec<DefaultPrivilegeGrant>,
}

/// Where default privileges hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefaultPrivilegeScope {
    /// `global` or `schema`.
    #[serde(rename = "type")]
    pub kind: ScopeType,
    /// The schema, for `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// Where default privileges hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ScopeType {
    Global,
    Schema,
}

/// One grantee of default privileges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefaultPrivilegeGrant {
    /// The role, or `PUBLIC`. In a profile it is the generated role, whatever is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Which privileges.
    pub privileges: Vec<Privilege>,
    /// On new objects of which kind.
    pub on_type: ObjectType,
    /// `absent`: the role must not get these privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
}
