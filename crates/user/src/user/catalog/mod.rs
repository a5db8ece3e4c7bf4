//! The server's catalog of a role, readable from any of its databases.

mod query;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_kernel::marks::{Found, Marks};
use stanchion_postgres::server::Powers;
use stanchion_postgres::{Row, Server};

pub use query::{CatalogQuery, read};

use crate::rules::Rules;

/// `aclexplode` of an expression. It decompresses its argument for every row that it returns, which takes tens of
/// milliseconds for a thousand grantees; a list that was just concatenated is not compressed. It is concatenated from
/// two arrays, because an array with one appended element is flattened again for every row. The entry that is appended
/// for that has no relevant grantee or privilege.
macro_rules! exploded {
    ($acl:literal) => {
        concat!(
            "pg_catalog.aclexplode(",
            $acl,
            " || ARRAY[pg_catalog.makeaclitem(4294967295, 4294967295, 'SELECT', false)])"
        )
    };
}
pub(crate) use exploded;

/// The rules and marks for an inspection.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// What the server opens to the object's namespace.
    pub rules: Arc<Rules>,
    /// Writes and reads marks.
    pub marks: Marks,
}

/// The state of the server.
#[derive(Debug)]
pub struct Catalog {
    /// The rules and marks of the inspection.
    pub viewer: Viewer,
    /// The server, and the administrator's properties there.
    pub server: Server,
    /// The role, if it exists.
    pub role: Option<RoleFacts>,
    /// The roles that it is a member of.
    pub memberships: BTreeMap<String, MembershipFacts>,
    /// The role, and the requested roles that exist.
    pub existing: BTreeMap<String, RoleRef>,
    /// The requested databases that exist.
    pub databases: BTreeMap<String, DatabaseFacts>,
    /// The template of the database to create.
    pub template: Option<DatabaseFacts>,
    /// The requested parameters that every user may set.
    pub user_parameters: BTreeSet<String>,
    /// The requested parameters that the server has.
    pub parameters: BTreeSet<String>,
    /// The requested extensions that the server has, and whether PostgreSQL trusts them.
    pub extensions: BTreeMap<String, bool>,
    /// The administrator's powers over the role.
    pub powers: Powers,
}

/// Properties of a role.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct RoleFacts {
    /// Its oid.
    pub oid: u32,
    /// LOGIN
    pub login: bool,
    /// INHERIT
    pub inherit: bool,
    /// CREATEDB
    pub create_database: bool,
    /// CREATEROLE
    pub create_role: bool,
    /// REPLICATION
    pub replication: bool,
    /// BYPASSRLS
    pub bypass_rls: bool,
    /// SUPERUSER
    pub superuser: bool,
    /// CONNECTION LIMIT
    pub connection_limit: i32,
    /// VALID UNTIL, if it expires
    pub valid_until: Option<Timestamp>,
    /// COMMENT
    pub comment: String,
    /// The user's part of the comment.
    pub text: String,
    /// The owner of the role.
    pub mark: Option<Found>,
    /// Parameters for all databases.
    pub parameters: BTreeMap<String, String>,
    /// The stored password.
    pub stored: Stored,
}

/// What is known of a stored password.
#[derive(Clone, Debug)]
pub enum Stored {
    /// Only a superuser may read it.
    Unreadable,
    /// There is no password.
    Nothing,
    /// A verifier, or a hash.
    Verifier(SecretString),
}

/// Another role, as far as its use is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleRef {
    /// The powers that come with it.
    pub reach: Reach,
    /// Its owner.
    pub mark: Option<Found>,
}

/// Powers of anybody who may act as a role: its own, and those of every role that it is a member of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct Reach {
    /// SUPERUSER, or a predefined role that amounts to it.
    pub superuser: bool,
    /// REPLICATION
    pub replication: bool,
    /// BYPASSRLS
    pub bypass_rls: bool,
    /// CREATEROLE
    pub create_role: bool,
}

/// Properties of a membership.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipFacts {
    /// ADMIN OPTION
    pub admin: bool,
    /// INHERIT OPTION; before PostgreSQL 16 an attribute of the member.
    pub inherit: Option<bool>,
    /// SET OPTION; before PostgreSQL 16 always true.
    pub set: Option<bool>,
    /// The grantors. From PostgreSQL 16 on, the grant of each has to be revoked separately.
    pub grantors: Vec<String>,
}

/// Properties of a database.
#[derive(Clone, Debug)]
pub struct DatabaseFacts {
    /// Its oid.
    pub oid: u32,
    /// Its owner.
    pub owner: String,
    /// Whether it accepts connections.
    pub open: bool,
    /// Whether the administrator may change the owner's default privileges, and the owner is not another namespace's.
    pub acting: bool,
    /// Whether it is a template.
    pub template: bool,
    /// The user's part of its comment.
    pub text: String,
    /// Its owner, by its mark.
    pub mark: Option<Found>,
    /// The mark of its owner.
    pub owner_mark: Option<Found>,
    /// Privileges of the role itself.
    pub granted: BTreeSet<String>,
    /// Privileges of PUBLIC.
    pub public: BTreeSet<String>,
}

impl Catalog {
    /// Adds the stored password, as far as it is known.
    pub fn with_stored(mut self, rows: Option<&[Row]>) -> Result<Self, Unexpected> {
        if let (Some(role), Some(rows)) = (&mut self.role, rows) {
            let stored: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
            role.stored = stored.map_or(Stored::Nothing, |stored| Stored::Verifier(stored.into()));
        }
        Ok(self)
    }
}

/// The server returned something that this version cannot read.
#[derive(Debug)]
pub struct Unexpected;

impl From<stanchion_postgres::RowError> for Unexpected {
    fn from(_: stanchion_postgres::RowError) -> Self {
        Self
    }
}

impl From<Unexpected> for stanchion_kernel::Problem {
    fn from(_: Unexpected) -> Self {
        Self::human(
            "UnexpectedCatalog",
            "the server's catalog is not PostgreSQL's; is it PostgreSQL 15 or newer?",
        )
    }
}
