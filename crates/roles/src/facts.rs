//! What is there: the database as one snapshot showed it.
//!
//! Role names in ACLs are numbers here ([`RoleId`]): a large database has some hundred thousand ACL entries and
//! a few thousand roles.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use secrecy::SecretString;

use crate::model::{ObjectType, PUBLIC, Privileges, RoleState};

/// A role's name, as a number of [`Facts::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleId(u32);

impl RoleId {
    /// Everybody.
    pub const PUBLIC: Self = Self(0);
}

/// Names of roles, each kept once.
#[derive(Debug, Clone)]
pub struct Names {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, RoleId>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            names: vec![],
            ids: HashMap::new(),
        };
        names.id(PUBLIC);
        names
    }
}

impl Names {
    /// The number of a name, given to it now if it has none.
    pub fn id(&mut self, name: &str) -> RoleId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = RoleId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    /// The number of a name that was seen.
    pub fn find(&self, name: &str) -> Option<RoleId> {
        self.ids.get(name).copied()
    }

    /// The name of a number.
    pub fn name(&self, id: RoleId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
    }
}

/// One entry of an ACL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AclEntry {
    /// Who holds the privileges.
    pub grantee: RoleId,
    /// Who gave them.
    pub grantor: RoleId,
    /// The privileges.
    pub privileges: Privileges,
    /// Those of them that can be passed on.
    pub grantable: Privileges,
}

/// The server, the database and who looked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerFacts {
    /// 150004 is 15.4.
    pub version: u32,
    /// The connected database.
    pub database: String,
    /// The role that looked.
    pub user: String,
    /// Whether it is a superuser.
    pub superuser: bool,
    /// Whether it can read password verifiers.
    pub reads_passwords: bool,
    /// The roles whose privileges it has by membership. Not looked up for a superuser, who has them all.
    pub acts_as: BTreeSet<String>,
}

/// An existing role.
#[derive(Debug, Clone)]
pub struct RoleFacts {
    /// Its oid: what its sessions are known by once it is gone.
    pub oid: u32,
    /// Its attributes.
    pub state: RoleState,
    /// Its password verifier, if it was asked for and can be read.
    pub verifier: Option<SecretString>,
}

/// An existing membership. From PostgreSQL 16 on there can be several of one member in one role.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // As in the catalog.
pub struct Edge {
    /// The role that has the member.
    pub role: String,
    /// The member.
    pub member: String,
    /// Who made it so.
    pub grantor: String,
    /// Made by the bootstrap superuser, which is the grantor that superusers act as.
    pub by_bootstrap: bool,
    /// May change the membership.
    pub admin: bool,
    /// Without SET ROLE.
    pub inherit: bool,
    /// May SET ROLE.
    pub set: bool,
}

/// An object that carries privileges.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectType,
    /// Its schema, if it lives in one.
    pub schema: Option<Arc<str>>,
    /// Its bare name.
    pub name: Box<str>,
    /// A column of it.
    pub column: Option<Box<str>>,
    /// A routine's argument types.
    pub types: Box<[String]>,
    /// Its owner.
    pub owner: RoleId,
    /// Its ACL; `None` is what new objects have.
    pub acl: Option<Box<[AclEntry]>>,
    /// Inside of what the manifest manages. Objects outside are here because a managed role holds something
    /// on them.
    pub in_scope: bool,
}

impl Object {
    /// How a manifest names it: a routine with its argument types.
    pub fn display_name(&self) -> String {
        match self.kind {
            ObjectType::Function => format!("{}({})", self.name, self.types.join(", ")),
            _ => self.name.to_string(),
        }
    }

    /// What a role holds on it, from whomever, and what of it can be passed on. An owner can always pass on, and
    /// no ACL says so.
    pub fn held_by(&self, role: RoleId) -> (Privileges, Privileges) {
        let spec = self.kind.spec();
        let (held, grantable) = match &self.acl {
            None if self.column.is_some() => Default::default(),
            None if role == RoleId::PUBLIC => (spec.public, Privileges::NONE),
            None if role == self.owner => (spec.privileges, spec.privileges),
            None => Default::default(),
            Some(acl) => acl.iter().filter(|entry| entry.grantee == role).fold(
                Default::default(),
                |(all, grantable): (Privileges, Privileges), entry| {
                    (all.union(entry.privileges), grantable.union(entry.grantable))
                },
            ),
        };
        (
            held,
            if role == self.owner {
                spec.privileges
            } else {
                grantable
            },
        )
    }
}

/// Default privileges of one owner.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultAcl {
    /// Whose new objects.
    pub owner: RoleId,
    /// In which schema; `None` is everywhere.
    pub schema: Option<String>,
    /// Kind of new objects.
    pub kind: ObjectType,
    /// Who gets what.
    pub acl: Box<[AclEntry]>,
}

/// What stands in the way of dropping a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropFacts {
    /// What depends on it, by database.
    pub dependencies: Vec<Dependency>,
    /// Its open sessions.
    pub sessions: i64,
}

/// Objects of one kind that depend on a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// In which database; `None` is on shared objects.
    pub database: Option<String>,
    /// Owned, or only mentioned in an ACL or a policy.
    pub owned: bool,
    /// How many.
    pub count: i64,
    /// One of them, where its name can be read from here.
    pub example: Option<String>,
}

/// Everything that one snapshot showed.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The server, the database and who looked.
    pub server: ServerFacts,
    /// Names of roles.
    pub names: Names,
    /// The roles that were asked for and exist.
    pub roles: BTreeMap<String, RoleFacts>,
    /// Memberships in and of managed roles.
    pub memberships: Vec<Edge>,
    /// Role and member of every membership above roles that get members.
    pub ancestry: Vec<(String, String)>,
    /// The schemas that were asked for and exist, with their place in `objects`.
    pub schemas: BTreeMap<String, usize>,
    /// Objects that carry privileges, schemas and the database among them.
    pub objects: Vec<Object>,
    /// Default privileges.
    pub defaults: Vec<DefaultAcl>,
    /// What is in the way of retirements.
    pub drops: BTreeMap<String, DropFacts>,
}

impl Facts {
    /// The owner of a schema that exists.
    pub fn schema_owner(&self, schema: &str) -> Option<&str> {
        let object = self.objects.get(*self.schemas.get(schema)?)?;
        Some(self.names.name(object.owner))
    }
}
