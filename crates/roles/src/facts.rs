//! The state of the database, from one snapshot.
//!
//! Role names in ACLs are interned as numbers ([`RoleId`]): a large database has some hundred thousand ACL entries and
//! a few thousand roles.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use secrecy::SecretString;
use stanchion_postgres::server::SelfGrant;

use crate::model::{ObjectType, PUBLIC, Privileges, RoleState};

/// A role's name, as an index into [`Facts::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleId(u32);

impl RoleId {
    /// The pseudo-role PUBLIC.
    pub const PUBLIC: Self = Self(0);
}

/// Interned role names.
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
    /// The id of a name, which is added if it is new.
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

    /// The id of a known name.
    pub fn find(&self, name: &str) -> Option<RoleId> {
        self.ids.get(name).copied()
    }

    /// The name of an id.
    pub fn name(&self, id: RoleId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
    }
}

/// One entry of an ACL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AclEntry {
    /// The role that holds the privileges.
    pub grantee: RoleId,
    /// The role that granted them.
    pub grantor: RoleId,
    /// The privileges.
    pub privileges: Privileges,
    /// Those that the grantee may grant to others.
    pub grantable: Privileges,
}

/// The server, the database and the inspecting role.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerFacts {
    /// The version number, such as 150004 for 15.4.
    pub version: u32,
    /// The connected database.
    pub database: String,
    /// The inspecting role.
    pub user: String,
    /// Whether the inspecting role is a superuser.
    pub superuser: bool,
    /// Whether the inspecting role can read password verifiers.
    pub reads_passwords: bool,
    /// The roles whose privileges the inspecting role has by membership. Empty for a superuser, who has all.
    pub acts_as: BTreeSet<String>,
    /// What the inspecting role gets of the roles that it creates (16 and later).
    pub self_grant: SelfGrant,
}

/// An existing role.
#[derive(Debug, Clone)]
pub struct RoleFacts {
    /// Its oid, which identifies its sessions after the role is dropped.
    pub oid: u32,
    /// Its attributes.
    pub state: RoleState,
    /// Its password verifier, if it was requested and can be read.
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
    /// The role that granted the membership.
    pub grantor: String,
    /// Whether the bootstrap superuser granted it, which is the grantor for all superusers.
    pub by_bootstrap: bool,
    /// Whether the member may grant the membership to others.
    pub admin: bool,
    /// Whether the member has the privileges without SET ROLE.
    pub inherit: bool,
    /// Whether the member may SET ROLE.
    pub set: bool,
}

/// An object that carries privileges.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectType,
    /// Its schema, for kinds that are in a schema.
    pub schema: Option<Arc<str>>,
    /// Its name without schema and arguments.
    pub name: Box<str>,
    /// The column, if the privileges are on a column.
    pub column: Option<Box<str>>,
    /// A routine's argument types.
    pub types: Box<[String]>,
    /// Its owner.
    pub owner: RoleId,
    /// Its ACL; `None` means the default privileges.
    pub acl: Option<Box<[AclEntry]>>,
    /// Whether the manifest manages the object. Objects outside the scope are included if a managed role holds
    /// privileges on them.
    pub in_scope: bool,
}

impl Object {
    /// Its name in a manifest: a routine includes its argument types.
    pub(crate) fn display_name(&self) -> String {
        match self.kind {
            ObjectType::Function => format!("{}({})", self.name, self.types.join(", ")),
            _ => self.name.to_string(),
        }
    }

    /// The privileges of a role on the object, from all grantors, and those that the role may grant to others. An owner
    /// may always grant, although no ACL says so.
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
    /// Owner of the future objects.
    pub owner: RoleId,
    /// Schema of the future objects; `None` means all schemas.
    pub schema: Option<String>,
    /// Kind of the future objects.
    pub kind: ObjectType,
    /// The grantees and their privileges.
    pub acl: Box<[AclEntry]>,
}

/// What prevents dropping a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropFacts {
    /// Dependent objects, by database.
    pub dependencies: Vec<Dependency>,
    /// Its open sessions.
    pub sessions: i64,
}

/// Objects that depend on a role, owned or not, in one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The database; `None` means shared objects.
    pub database: Option<String>,
    /// Whether the role owns them; otherwise an ACL or a policy mentions the role.
    pub owned: bool,
    /// Whether REASSIGN OWNED gives them to another role; it leaves default privileges and user mappings.
    pub reassigned: bool,
    /// How many.
    pub count: i64,
    /// One of them, if its name can be read from the connected database.
    pub example: Option<String>,
}

/// Everything that one snapshot contains.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The server, the database and the inspecting role.
    pub server: ServerFacts,
    /// Names of roles.
    pub names: Names,
    /// The requested roles that exist.
    pub roles: BTreeMap<String, RoleFacts>,
    /// Memberships in and of managed roles.
    pub memberships: Vec<Edge>,
    /// Role and member of every membership above roles that get members.
    pub ancestry: Vec<(String, String)>,
    /// The requested schemas that exist, with their index in `objects`.
    pub schemas: BTreeMap<String, usize>,
    /// Objects that carry privileges, including schemas and the database.
    pub objects: Vec<Object>,
    /// Default privileges.
    pub defaults: Vec<DefaultAcl>,
    /// What prevents retirements.
    pub drops: BTreeMap<String, DropFacts>,
}

impl Facts {
    /// The owner of a schema that exists.
    pub fn schema_owner(&self, schema: &str) -> Option<&str> {
        let object = self.objects.get(*self.schemas.get(schema)?)?;
        Some(self.names.name(object.owner))
    }
}
