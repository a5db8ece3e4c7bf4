//! Privileges: on existing objects, on future ones, and in profiles, which are bound to schemas.
//!
//! `PostgresPolicy` has twins of these types (`crates/api/src/policy`): the schema of a CRD needs limits and CEL rules that a
//! manifest does not have, and this crate does not depend on Kubernetes.

use std::collections::BTreeMap;

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
