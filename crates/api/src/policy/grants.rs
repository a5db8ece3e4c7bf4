//! Privileges in a policy.
//!
//! The engine has twins of these types (`crates/roles/src/manifest/types`). The schema of a CRD needs limits and CEL rules
//! that a manifest does not have, and the engine does not depend on Kubernetes.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A PostgreSQL privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Privilege {
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
    References,
    Trigger,
    Execute,
    Usage,
    Create,
    Connect,
    Temporary,
    Maintain,
    Set,
    #[serde(rename = "ALTER SYSTEM")]
    AlterSystem,
}

/// A kind of object that has privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ObjectType {
    Table,
    View,
    MaterializedView,
    Sequence,
    Function,
    Schema,
    Database,
    Type,
    ForeignTable,
    ForeignDataWrapper,
    ForeignServer,
    Language,
    LargeObject,
    Parameter,
    Tablespace,
}

/// `present`: must exist. `absent`: must not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Ensure {
    #[default]
    Present,
    Absent,
}

impl Ensure {
    #[allow(clippy::trivially_copy_pass_by_ref)] // Serde requires this signature.
    fn is_present(&self) -> bool {
        *self == Self::Present
    }
}

/// A template for one role per schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// LOGIN. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<bool>,
    /// INHERIT. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// Privileges of the role on the schema and its objects.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub grants: Vec<ProfileGrant>,
    /// Privileges of the role on future objects.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub default_privileges: Vec<DefaultPrivilegeGrant>,
    /// Settings for ALTER ROLE … SET. `{schema}` and `{profile}` in values are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<String, String>,
    /// COMMENT ON ROLE of the generated roles. `{schema}` and `{profile}` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub comment: Option<String>,
    /// `roles[].exclusive` of the generated roles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
}

/// A grant in a profile. It applies to the schema that the profile is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileGrant {
    /// Privileges to grant.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// The object of the grant.
    #[serde(alias = "on")]
    pub object: ProfileObject,
    /// Only `present`: a template cannot declare absence.
    #[serde(default, skip_serializing_if = "Ensure::is_present")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// roles that it manages, and the other modes warn about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// An object in the schema that the profile is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Privileges of a role on an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "Ensure::is_present")]
    pub ensure: Ensure,
    /// Whether the role may grant the privileges to others. If unset, authoritative mode revokes the grant option from
    /// roles that it manages, and the other modes warn about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// The object of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.schema) != has(self.scope)").message("exactly one of schema and scope is required"),
)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.schema) == (self.type == 'schema')").message("schema is for type schema"),
)]
pub struct DefaultPrivilegeScope {
    /// `global` or `schema`.
    #[serde(rename = "type")]
    pub kind: ScopeType,
    /// The schema, with type `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
}

/// Scope of default privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ScopeType {
    Global,
    Schema,
}

/// One grantee of default privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "Ensure::is_present")]
    pub ensure: Ensure,
}
