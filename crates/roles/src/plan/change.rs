//! One change. Its JSON is pgroles' JSON; what we add is left out where it says nothing.

use std::sync::Arc;

use secrecy::SecretString;
use serde::{Serialize, Serializer};

use crate::facts::Object;
use crate::model::{Attribute, ObjectType, Privileges, RoleState};

/// Something to do to the database.
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
    /// Runs after the commit: the role is gone, so nobody can come back.
    TerminateSessions {
        role: String,
        #[serde(skip)]
        oid: u32,
    },
}

/// Privileges to give, on one object or on all of a kind that lack them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grant {
    /// The role, or `PUBLIC`.
    pub role: String,
    /// Which.
    pub privileges: Privileges,
    /// Kind of object.
    pub object_type: ObjectType,
    /// Its schema.
    pub schema: Option<String>,
    /// Its name, or `*`.
    pub name: Option<String>,
    /// Only these columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// May be passed on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub with_grant_option: bool,
    /// The objects that this is about.
    #[serde(skip)]
    pub targets: Vec<Target>,
}

/// Privileges to take, on one object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revoke {
    /// The role, or `PUBLIC`.
    pub role: String,
    /// Which.
    pub privileges: Privileges,
    /// Kind of object.
    pub object_type: ObjectType,
    /// Its schema.
    pub schema: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Only these columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Who gave them, if it was not the owner: nobody else can take them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grantor: Option<String>,
    /// Only the right to pass them on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grant_option_only: bool,
    /// They were passed on. Who got them that way and keeps them is given them by the owner first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cascade: bool,
    /// The object.
    #[serde(skip)]
    pub target: Target,
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
    /// Which.
    pub privileges: Privileges,
    /// Only the right to pass them on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grant_option_only: bool,
}

/// Where default privileges hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DefaultScope {
    Global,
    Schema { schema: String },
}

impl DefaultScope {
    /// The schema, if it is one.
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

/// An object as SQL names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Target {
    /// Its schema.
    pub schema: Option<Arc<str>>,
    /// Its bare name.
    pub name: Box<str>,
    /// A routine's argument types; `None` when the manifest did not give them and no such routine exists.
    pub types: Option<Box<[String]>>,
}

impl Target {
    /// An object that exists.
    pub fn of(object: &Object) -> Self {
        Self {
            schema: object.schema.clone(),
            name: object.name.clone(),
            types: (object.kind == ObjectType::Function).then(|| object.types.clone()),
        }
    }

    /// One name, in no schema.
    pub fn named(name: &str) -> Self {
        Self {
            schema: None,
            name: name.into(),
            types: None,
        }
    }
}

/// A clear password, which nothing shows.
#[derive(Clone)]
pub struct Password(pub SecretString);

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

/// Two plans that set a password do the same: which one it is, is not part of a plan's identity.
impl PartialEq for Password {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
