//! What the server says about a role, from any of its databases.

mod question;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_kernel::marks::{Found, Marks};
use stanchion_postgres::server::Powers;
use stanchion_postgres::{Row, Server};

pub use question::{Question, read};

use crate::rules::Rules;

/// Who looks: what the server opens to them, and how they tell whose something is.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// What the server opens to the object's namespace.
    pub rules: Arc<Rules>,
    /// Writes and reads marks.
    pub marks: Marks,
}

/// What there is on the server.
#[derive(Debug)]
pub struct Catalog {
    /// Who looked.
    pub viewer: Viewer,
    /// The server, and who we are there.
    pub server: Server,
    /// The role, if it is there.
    pub role: Option<RoleFacts>,
    /// The roles that it is a member of.
    pub memberships: BTreeMap<String, MembershipFacts>,
    /// The role, and the roles among those asked for that exist.
    pub existing: BTreeMap<String, RoleRef>,
    /// The databases among those asked for that exist.
    pub databases: BTreeMap<String, DatabaseFacts>,
    /// The template of the database that is to be made.
    pub template: Option<DatabaseFacts>,
    /// The parameters among those asked for that every user may set.
    pub user_parameters: BTreeSet<String>,
    /// The parameters among those asked for that the server knows.
    pub parameters: BTreeSet<String>,
    /// The extensions among those asked for that the server has, and whether PostgreSQL trusts them to everybody.
    pub extensions: BTreeMap<String, bool>,
    /// What we may do with the role.
    pub powers: Powers,
}

/// A role as it is.
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
    /// VALID UNTIL, when there is an end
    pub valid_until: Option<Timestamp>,
    /// COMMENT
    pub comment: String,
    /// The part of it that people wrote.
    pub text: String,
    /// Whose the role is.
    pub mark: Option<Found>,
    /// Parameters for all databases.
    pub parameters: BTreeMap<String, String>,
    /// The stored password.
    pub stored: Stored,
}

/// What can be known of a stored password.
#[derive(Clone, Debug)]
pub enum Stored {
    /// Only a superuser may look.
    Unreadable,
    /// There is none.
    Nothing,
    /// A verifier, or a hash.
    Verifier(SecretString),
}

/// Another role, as far as it matters to whoever wants to use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleRef {
    /// The powers that come with it.
    pub reach: Reach,
    /// Whose it is.
    pub mark: Option<Found>,
}

/// Powers that somebody has who may act as a role: its own, and those of every role that it is a member of.
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

/// A membership as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipFacts {
    /// ADMIN OPTION
    pub admin: bool,
    /// INHERIT OPTION; before PostgreSQL 16 an attribute of the member.
    pub inherit: Option<bool>,
    /// SET OPTION; before PostgreSQL 16 always so.
    pub set: Option<bool>,
    /// Who gave it. From PostgreSQL 16 on, what several have given has to be taken back from each.
    pub grantors: Vec<String>,
}

/// A database as it is.
#[derive(Clone, Debug)]
pub struct DatabaseFacts {
    /// Its oid.
    pub oid: u32,
    /// Its owner.
    pub owner: String,
    /// Whether anybody may connect at all.
    pub open: bool,
    /// Whether we may change the owner's default privileges, and the owner is not another namespace's.
    pub acting: bool,
    /// Whether it is a template.
    pub template: bool,
    /// The part of its comment that people wrote.
    pub text: String,
    /// Whose it is.
    pub mark: Option<Found>,
    /// Whose its owner is.
    pub owner_mark: Option<Found>,
    /// Words that the role itself was given.
    pub granted: BTreeSet<String>,
    /// Words that PUBLIC has.
    pub public: BTreeSet<String>,
}

impl Catalog {
    /// Fills in the stored password, as far as it can be known.
    pub fn with_stored(mut self, rows: Option<&[Row]>) -> Result<Self, Unexpected> {
        if let (Some(role), Some(rows)) = (&mut self.role, rows) {
            let stored: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
            role.stored = stored.map_or(Stored::Nothing, |stored| Stored::Verifier(stored.into()));
        }
        Ok(self)
    }
}

/// The server answered something that this program does not understand.
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
