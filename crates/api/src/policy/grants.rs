//! Privileges of a policy: the manifest's words.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A privilege that PostgreSQL can grant.
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

/// A kind of object that carries privileges.
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

/// Whether something must be there or must not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Ensure {
    #[default]
    Present,
    Absent,
}

impl Ensure {
    #[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
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
    /// What the role may do with the schema and the objects in it.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub grants: Vec<ProfileGrant>,
    /// What the role may do with objects that do not exist yet.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub default_privileges: Vec<DefaultPrivilegeGrant>,
    /// ALTER ROLE … SET; `{schema}` and `{profile}` are replaced in values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<String, String>,
    /// COMMENT ON ROLE of the generated roles; `{schema}` and `{profile}` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub comment: Option<String>,
    /// As `roles[].exclusive`, for the generated roles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
}

/// A grant of a profile: its schema is the one that the profile is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileGrant {
    /// Which privileges.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// On what.
    #[serde(alias = "on")]
    pub object: ProfileObject,
    /// Only `present`: a template cannot say what must not be.
    #[serde(default, skip_serializing_if = "Ensure::is_present")]
    pub ensure: Ensure,
    /// Whether the role may pass the privileges on. Unset: authoritative mode takes the right to do so from roles that it manages, the other modes warn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// An object of the schema that a profile is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileObject {
    /// Kind of object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Its name, or `*` for all of that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
    /// With `*`: names (or patterns with `*`) that are not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub except: Vec<String>,
    /// Only these columns.
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
    /// Which privileges.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// On what.
    #[serde(alias = "on")]
    pub object: Object,
    /// `absent`: the role must not hold these privileges.
    #[serde(default, skip_serializing_if = "Ensure::is_present")]
    pub ensure: Ensure,
    /// Whether the role may pass the privileges on. Unset: authoritative mode takes the right to do so from roles that it manages, the other modes warn of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_grant_option: Option<bool>,
}

/// What a grant is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// Kind of object.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// Its schema, for kinds that live in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
    /// Its name, `*` for all of that kind in the schema; a function with its argument types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
    /// With `*`: names (or patterns with `*`) that are not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub except: Vec<String>,
    /// Only these columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub columns: Vec<String>,
}

/// Privileges that new objects of an owner get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.schema) != has(self.scope)").message("exactly one of schema and scope is required"),
)]
pub struct DefaultPrivilege {
    /// Whose new objects. Default: the schema's owner, `default_owner`, `postgres`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub owner: Option<String>,
    /// In which schema. Either this or `scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
    /// Everywhere, or in which schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<DefaultPrivilegeScope>,
    /// Who gets what.
    #[schemars(length(max = 64))]
    pub grant: Vec<DefaultPrivilegeGrant>,
}

/// Where default privileges hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.schema) == (self.type == 'schema')").message("schema is for type schema"),
)]
pub struct DefaultPrivilegeScope {
    /// `global` or `schema`.
    #[serde(rename = "type")]
    pub kind: ScopeType,
    /// The schema, for `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<String>,
}

/// Where default privileges hold.
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
    /// The role, or `PUBLIC`. In a profile it is the generated role, whatever is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub role: Option<String>,
    /// Which privileges.
    #[schemars(length(max = 16))]
    pub privileges: Vec<Privilege>,
    /// On new objects of which kind.
    pub on_type: ObjectType,
    /// `absent`: the role must not get these privileges.
    #[serde(default, skip_serializing_if = "Ensure::is_present")]
    pub ensure: Ensure,
}
