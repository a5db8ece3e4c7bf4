//! Default privileges: those that future objects get.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ensure, is_default};
use crate::model::{ObjectType, Privilege};

/// Default privileges for future objects of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefaultPrivilege {
    /// Owner of the future objects. Default: the schema's owner, then `default_owner`, then `postgres`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Schema of the future objects. Set either this or `scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Scope of the default privileges: all schemas, or one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<DefaultPrivilegeScope>,
    /// The grantees and their privileges.
    pub grant: Vec<DefaultPrivilegeGrant>,
}

/// Scope of default privileges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefaultPrivilegeScope {
    /// `global` or `schema`.
    #[serde(rename = "type")]
    pub kind: ScopeType,
    /// The schema, for the type `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// The type of scope.
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
    /// The role, or `PUBLIC`. Ignored in a profile, where it is the generated role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The privileges to grant.
    pub privileges: Vec<Privilege>,
    /// Kind of the future objects.
    pub on_type: ObjectType,
    /// `absent`: the role must not get these privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
}
