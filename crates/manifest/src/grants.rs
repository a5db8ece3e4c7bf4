//! Privileges: on existing objects, on future ones, and in profiles, which are bound to schemas.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ObjectType, Privilege, is_default};

/// `present`: must exist. `absent`: must not exist.
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
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// Privileges to grant.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// The object of the grant.
    #[serde(alias = "on")]
    pub object: Object,
    /// `absent`: the role must not have these privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// roles that it manages, and the other modes warn about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// The object of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// Kind of the object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Schema of the object, for kinds that live in a schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
    /// Name of the object, or `*` for all objects of the kind in the schema. The name of a function includes its
    /// argument types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
    /// With `*`: names to exclude, or patterns with `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub except: Vec<String>,
    /// Restricts the grant to these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub columns: Vec<String>,
}

/// Privileges on future objects of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.schema) != has(self.scope)", "message": "exactly one of schema and scope is required" },
]))]
pub struct DefaultPrivilege {
    /// The role that creates the objects. Default: the schema's owner, then `default_owner`, then `postgres`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub owner: Option<String>,
    /// The schema of the objects. Set either this or `scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
    /// All schemas, or one schema. Set either this or `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<DefaultPrivilegeScope>,
    /// Grantees and their privileges.
    #[schemars(length(max = 64))]
    pub grant: Vec<DefaultPrivilegeGrant>,
}

/// Scope of default privileges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.schema) == (self.type == 'schema')", "message": "schema is for type schema" },
]))]
pub struct DefaultPrivilegeScope {
    /// `global` or `schema`.
    #[serde(rename = "type")]
    pub kind: ScopeType,
    /// The schema, with type `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
}

/// Type of the scope of default privileges.
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
    /// The role, or `PUBLIC`. In a profile it is always the generated role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub role: Option<String>,
    /// Privileges to grant.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// Kind of the future objects.
    pub on_type: ObjectType,
    /// `absent`: the role must not get these privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// roles that it manages, and the other modes warn about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
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
    /// Privileges of the role on the schema and its objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("default" = []))]
    pub grants: Vec<ProfileGrant>,
    /// Privileges of the role on future objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("default" = []))]
    pub default_privileges: Vec<DefaultPrivilegeGrant>,
    /// Settings for ALTER ROLE … SET. `{schema}` and `{profile}` in values are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<String, String>,
    /// COMMENT ON ROLE of the generated roles. `{schema}` and `{profile}` are replaced, and an empty text sets no
    /// comment. Default: `Generated from profile '{profile}' for schema '{schema}'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub comment: Option<String>,
    /// `roles[].exclusive` of the generated roles.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A grant in a profile. It applies to the schema that the profile is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileGrant {
    /// Privileges to grant.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// The object of the grant.
    #[serde(alias = "on")]
    pub object: ProfileObject,
    /// Only `present`: a template cannot declare absence.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// roles that it manages, and the other modes warn about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// An object in the schema that the profile is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileObject {
    /// Kind of the object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Name of the object, or `*` for all objects of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
    /// With `*`: names to exclude, or patterns with `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub except: Vec<String>,
    /// Restricts the grant to these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub columns: Vec<String>,
}

/// A schema to create if missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schema {
    /// Name of the schema.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The profiles that become roles for this schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)), extend("default" = []))]
    pub profiles: Vec<String>,
    /// Name pattern of these roles. It must contain `{profile}`. Default: the policy's `role_pattern`, then
    /// `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub role_pattern: Option<String>,
    /// Owner of the schema. Default: `default_owner`. Without either, the owner does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub owner: Option<String>,
}
