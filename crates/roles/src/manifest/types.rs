//! The format, type by type.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{ObjectType, Privilege};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A policy manifest. Everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Owner of declared schemas and of default privileges that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_owner: Option<String>,
    /// How generated roles are named, unless a schema says otherwise. Default: `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_pattern: Option<String>,
    /// Lets adopt mode give existing schemas to their declared owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_schema_owner_transfers: bool,
    /// Where logins come from. For the reader; nothing is done with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auth_providers: Vec<AuthProvider>,
    /// Templates: each profile of a schema becomes a role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Profile>,
    /// Schemas to keep in existence, with the profiles that are bound to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<Schema>,
    /// Roles to keep in existence, with all of their attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// Privileges on objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Privileges on objects that do not exist yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_privileges: Vec<DefaultPrivilege>,
    /// Who is a member of what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Membership>,
    /// Roles to drop: the only way in which a role is ever dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retirements: Vec<Retirement>,
}

/// A source of logins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthProvider {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: AuthProviderType,
    /// Cloud SQL, `AlloyDB`: the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `AlloyDB`: the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// RDS: the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Azure AD: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Supabase: the project's reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_ref: Option<String>,
    /// `PlanetScale`: the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

/// The known sources of logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AuthProviderType {
    CloudSqlIam,
    AlloydbIam,
    RdsIam,
    AzureAd,
    Supabase,
    PlanetScale,
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
    /// Whether the role may pass the privileges on. Unset: not looked at.
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

/// A role to keep in existence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// LOGIN. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<bool>,
    /// SUPERUSER. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superuser: Option<bool>,
    /// CREATEDB. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub createdb: Option<bool>,
    /// CREATEROLE. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub createrole: Option<bool>,
    /// INHERIT. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// REPLICATION. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<bool>,
    /// BYPASSRLS. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypassrls: Option<bool>,
    /// CONNECTION LIMIT. Default: -1, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i32>,
    /// COMMENT ON ROLE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Where the password comes from. Needs `login: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// When the password expires: `2030-01-01T00:00:00Z`, or with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_valid_until: Option<String>,
    /// ALTER ROLE … SET, for all databases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Made elsewhere: neither created nor altered, but its privileges are managed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub external: bool,
    /// Keeps privileges of this role that the manifest does not mention.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preserve_undeclared_grants: bool,
    /// The manifest says everything about this role: what it holds in unmentioned schemas, on columns and on
    /// other objects of this database, and its memberships in unmentioned roles, is revoked, not only reported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// Where a password comes from. Exactly one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Password {
    /// Command line: the environment variable that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// Operator: the Secret that holds it.
    #[serde(default, rename = "secretRef", skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// Operator: the key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// Operator: make one and keep it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<GeneratePassword>,
}

/// A Secret of the policy's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Its name.
    pub name: String,
}

/// A password that the operator makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratePassword {
    /// Number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// The Secret to keep it in.
    #[serde(default, rename = "secretName", skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The key in the Secret.
    #[serde(default, rename = "secretKey", skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
}

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
    /// Whether the role may pass the privileges on. Unset: not looked at.
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

/// The members of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Membership {
    /// The role that has members.
    pub role: String,
    /// Its members.
    pub members: Vec<Member>,
    /// For predefined and external roles: other members are removed. Declared roles are always so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Its name. It need not be declared.
    pub name: String,
    /// Has the role's privileges without SET ROLE (PostgreSQL 16 and newer). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// May add and remove members. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    /// May SET ROLE (PostgreSQL 16 and newer). Unset: not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}

/// A role to drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retirement {
    /// The role.
    pub role: String,
    /// Who gets what it owns in this database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reassign_owned_to: Option<String>,
    /// Drops what it still owns in this database, and its privileges there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drop_owned: bool,
    /// Ends its sessions once it is gone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminate_sessions: bool,
}
