//! The identity of a database.
//!
//! Two Secrets, a host name and an address, a Service and its pod: many addresses can lead to one database. It is
//! identified by what the server reports: the cluster's system identifier and the database's OID. A hostile server can
//! report anything, so this alone never decides about other owners: see [`Place`].
//!
//! Every role may call `pg_control_system()` unless an administrator revoked that. Then the address replaces the
//! identifier: databases are still distinguished, but two addresses of one server are not recognised as one. A physical
//! replica has its primary's identifier, as it should: it has the same data.

use std::fmt;

use crate::connection_config::ConnectionConfig;
use crate::session::{Lost, ReadSession};

/// The identity of a database, equal for every address of it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    system: String,
    database_oid: u32,
    database: String,
}

impl Identity {
    /// Columns: system identifier, database oid, database name, server version, and whether the session's transactions
    /// only read by default: from now on they do, unless the server allows nothing else.
    pub(crate) const QUERY: &'static str = "SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), oid, datname, \
         pg_catalog.current_setting('server_version_num'), \
         CASE pg_catalog.current_setting('transaction_read_only') WHEN 'off' THEN \
         pg_catalog.set_config('default_transaction_read_only', 'on', false) ELSE 'off' END \
         FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

    /// The query for roles that may not call `pg_control_system()`.
    pub(crate) const QUERY_WITHOUT_SYSTEM: &'static str = "SELECT NULL, oid, datname, pg_catalog.current_setting('server_version_num'), \
         CASE pg_catalog.current_setting('transaction_read_only') WHEN 'off' THEN \
         pg_catalog.set_config('default_transaction_read_only', 'on', false) ELSE 'off' END \
         FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

    /// Before the server was queried.
    pub(crate) fn unknown(target: &ConnectionConfig) -> Self {
        Self {
            system: target.to_string(),
            database_oid: 0,
            database: target.database().to_owned(),
        }
    }

    /// The identity of the server, without the database.
    pub(crate) fn server(&self) -> Self {
        Self {
            system: self.system.clone(),
            database_oid: 0,
            database: String::new(),
        }
    }

    pub(crate) fn of_columns(
        target: &ConnectionConfig,
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

    /// Whether the query for the system identifier failed.
    pub(crate) fn was_refused(lost: &Lost) -> bool {
        // SET ROLE precedes it and fails with the same code, but also fails in the second attempt.
        matches!(lost, Lost::Driver(error) if error.code().is_some_and(|code| code.code() == "42501"))
    }

    /// The server: its system identifier, or `host:port` if that is not available.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The database's OID. It stays when the database is renamed.
    pub fn database_oid(&self) -> u32 {
        self.database_oid
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Whether both are on one server, which shares its roles.
    pub fn same_server(&self, other: &Self) -> bool {
        self.system == other.system
    }
}

/// A database with the identity that it reports, and its address.
///
/// A server can report the identity of another one. Code that grants something based on the identity, such as a lock or
/// precedence, also compares the address: only sessions at the same address have reached the same server.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The address.
    pub peer: String,
    /// The identity that the server reports.
    pub identity: Identity,
}

impl Place {
    /// The place of a session.
    pub fn of(session: &ReadSession) -> Self {
        Self {
            peer: session.peer(),
            identity: session.identity().clone(),
        }
    }

    /// The place of the server, without the database.
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
