//! Which database this really is.
//!
//! Two Secrets, a host name and an address, a Service and its pod: many roads lead to one database. It is known by
//! what the server says of itself: the cluster's system identifier and the database's oid. A hostile server says what
//! it likes, so nothing of somebody else's is decided by that alone: see [`Place`].
//!
//! `pg_control_system()` may be called by everybody unless an administrator revoked that. Where it was, the address
//! takes the place of the identifier: databases are then still told apart, but two addresses of one server are
//! not recognised as one. A physical replica has its primary's identifier, as it should: it is the same data.

use std::fmt;

use crate::session::{Lost, Session};
use crate::target::Target;

/// The identity of a database, equal on every road to it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    system: String,
    database_oid: u32,
    database: String,
}

impl Identity {
    /// Columns: system identifier, database oid, database name, server version.
    pub(crate) const QUERY: &'static str = "SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), oid, datname, \
         pg_catalog.current_setting('server_version_num') \
         FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

    /// The same for those who may not call `pg_control_system()`.
    pub(crate) const QUERY_WITHOUT_SYSTEM: &'static str = "SELECT NULL, oid, datname, pg_catalog.current_setting('server_version_num') \
         FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

    /// Before the server was asked.
    pub(crate) fn unknown(target: &Target) -> Self {
        Self {
            system: target.to_string(),
            database_oid: 0,
            database: target.database().to_owned(),
        }
    }

    /// What all databases of the server have in common.
    pub(crate) fn server(&self) -> Self {
        Self {
            system: self.system.clone(),
            database_oid: 0,
            database: String::new(),
        }
    }

    pub(crate) fn of_columns(
        target: &Target,
        system: Option<&str>,
        oid: Option<&str>,
        name: Option<&str>,
    ) -> Self {
        let unknown = Self::unknown(target);
        Self {
            system: system.map_or(unknown.system, str::to_owned),
            database_oid: oid.and_then(|text| text.parse().ok()).unwrap_or_default(),
            database: name.map_or(unknown.database, str::to_owned),
        }
    }

    /// Was the question for the system identifier what failed?
    pub(crate) fn was_refused(lost: &Lost) -> bool {
        // SET ROLE stands before it and fails with the same code, but is still there in the second try.
        matches!(lost, Lost::Driver(error) if error.code().is_some_and(|code| code.code() == "42501"))
    }

    /// The server: its system identifier, or `host:port` where that is not to be had.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The database's oid. It stays when the database is renamed.
    pub fn database_oid(&self) -> u32 {
        self.database_oid
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Are both on one server? Roles are shared there.
    pub fn same_server(&self, other: &Self) -> bool {
        self.system == other.system
    }
}

/// A database as somebody found it: what it says of itself, and the address that it said so at.
///
/// A server can say that it is another one. Whoever gives something for it, a turn or the right of way, asks for the
/// address as well: only who logged in at the same one has met the same server.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The address.
    pub peer: String,
    /// What the server says.
    pub identity: Identity,
}

impl Place {
    /// Where a session is.
    pub fn of(session: &Session) -> Self {
        Self {
            peer: session.peer(),
            identity: session.identity().clone(),
        }
    }

    /// What all databases of the server have in common.
    pub(crate) fn server(&self) -> Self {
        Self {
            peer: self.peer.clone(),
            identity: self.identity.server(),
        }
    }
}

/// `<system>/<oid>`: short, stable and without secrets, so it can be stored.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.system, self.database_oid)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}
