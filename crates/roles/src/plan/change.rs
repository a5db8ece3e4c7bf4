//! One change. Its JSON is pgroles' format; additional fields are omitted if they are empty.

use std::sync::Arc;

use rand::CryptoRng;
use secrecy::SecretString;
use serde::{Serialize, Serializer};
use stanchion_postgres::scram;

use crate::facts::Object;
use crate::model::{Attribute, ObjectType, Privileges, RoleState};

/// A change to the database.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub enum Change {
    CreateRole {
        name: String,
        state: RoleState,
    },
    AlterRole {
        name: String,
        attributes: Vec<Attribute>,
    },
    SetComment {
        name: String,
        comment: Option<String>,
    },
    SetPassword {
        name: String,
        password: Password,
    },
    CreateSchema {
        name: String,
        owner: Option<String>,
    },
    AlterSchemaOwner {
        name: String,
        owner: String,
    },
    EnsureSchemaOwnerPrivileges {
        name: String,
        owner: String,
        privileges: Privileges,
    },
    Grant(Grant),
    Revoke(Revoke),
    SetDefaultPrivilege(DefaultPrivilege),
    RevokeDefaultPrivilege(DefaultPrivilege),
    AddMember {
        role: String,
        member: String,
        inherit: bool,
        admin: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        set: Option<bool>,
    },
    UpdateMemberOptions {
        role: String,
        member: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        grantor: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        inherit: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        admin: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        set: Option<bool>,
    },
    RemoveMember {
        role: String,
        member: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        grantor: Option<String>,
    },
    ReassignOwned {
        from_role: String,
        to_role: String,
    },
    DropOwned {
        role: String,
    },
    DropRole {
        name: String,
    },
    /// Runs after the commit, when the role is gone and cannot log in again.
    TerminateSessions {
        role: String,
        #[serde(skip)]
        oid: u32,
    },
}

/// Privileges to grant, on one object or on all objects of a kind that lack them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grant {
    /// The role, or `PUBLIC`.
    pub role: String,
    /// The privileges to grant.
    pub privileges: Privileges,
    /// Kind of object.
    pub object_type: ObjectType,
    /// Its schema.
    pub schema: Option<String>,
    /// Its name, or `*`.
    pub name: Option<String>,
    /// Restricts the grant to these columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Whether to grant WITH GRANT OPTION.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub with_grant_option: bool,
    /// The objects that the grant concerns.
    #[serde(skip)]
    pub targets: Vec<GrantTarget>,
}

/// Privileges to revoke on one object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revoke {
    /// The role, or `PUBLIC`.
    pub role: String,
    /// The privileges to revoke.
    pub privileges: Privileges,
    /// Kind of object.
    pub object_type: ObjectType,
    /// Its schema.
    pub schema: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Restricts the revocation to these columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The role that revokes, because only the grantor can: if it is not the owner, or if PostgreSQL would choose another role
    /// than the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grantor: Option<String>,
    /// Whether to revoke only the grant option.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grant_option_only: bool,
    /// Whether the privileges were granted on. Roles that received them that way and keep them get them from the owner:
    /// first, and on columns afterwards.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cascade: bool,
    /// The object.
    #[serde(skip)]
    pub target: GrantTarget,
}

/// Default privileges to set or to revoke.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DefaultPrivilege {
    /// Whose new objects.
    pub owner: String,
    /// Where.
    pub scope: DefaultScope,
    /// Kind of new objects.
    pub on_type: ObjectType,
    /// The role, or `PUBLIC`.
    pub grantee: String,
    /// The privileges.
    pub privileges: Privileges,
    /// Whether to grant WITH GRANT OPTION.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub with_grant_option: bool,
    /// Whether to revoke only the grant option.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grant_option_only: bool,
}

/// Scope of default privileges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DefaultScope {
    Global,
    Schema { schema: String },
}

impl DefaultScope {
    /// The schema, if the scope is one.
    pub fn schema(&self) -> Option<&str> {
        match self {
            Self::Global => None,
            Self::Schema { schema } => Some(schema),
        }
    }
}

impl From<Option<&str>> for DefaultScope {
    fn from(schema: Option<&str>) -> Self {
        schema.map_or(Self::Global, |schema| Self::Schema {
            schema: schema.to_owned(),
        })
    }
}

/// An object as named in SQL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GrantTarget {
    /// Its schema.
    pub schema: Option<Arc<str>>,
    /// Its name without schema.
    pub name: Box<str>,
    /// A routine's argument types; `None` if the manifest omits them and no such routine exists.
    pub types: Option<Box<[String]>>,
}

impl GrantTarget {
    /// The target for an existing object.
    pub fn of(object: &Object) -> Self {
        Self {
            schema: object.schema.clone(),
            name: object.name.clone(),
            types: (object.kind == ObjectType::Function).then(|| object.types.clone()),
        }
    }

    /// A target without a schema.
    pub fn named(name: &str) -> Self {
        Self {
            schema: None,
            name: name.into(),
            types: None,
        }
    }
}

/// A password, in clear text or as a verifier, and the salt of the verifier to make. Debug and JSON redact it.
#[derive(Clone)]
pub struct Password {
    pub(crate) text: SecretString,
    salt: scram::Salt,
}

impl Password {
    /// A password with a random salt.
    pub fn new(text: SecretString, random: &mut dyn CryptoRng) -> Self {
        let salt = scram::salt(random);
        Self { text, salt }
    }

    /// What the server gets. It accepts a verifier unchanged.
    pub(crate) fn verifier(&self) -> SecretString {
        match scram::encoding(&self.text) {
            scram::Encoding::Clear => scram::verifier(&self.text, &self.salt),
            scram::Encoding::Scram | scram::Encoding::Md5 => self.text.clone(),
        }
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[REDACTED]")
    }
}

impl Serialize for Password {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[REDACTED]")
    }
}

/// Two plans that set a password are equal: the password itself is not part of a plan's identity.
impl PartialEq for Password {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
