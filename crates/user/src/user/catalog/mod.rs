//! What PostgreSQL's catalogs say about a role: here what every database shows of it, in [`databases`] the databases and
//! what is in them.

pub(crate) mod databases;
mod memberships;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Bearer, Found, Marks};
use stanchion_postgres::server::Powers;
use stanchion_postgres::{Query, ReadSession, Row, Server};

use self::databases::DatabaseFacts;
pub(crate) use self::memberships::MembershipFacts;
#[cfg(test)]
pub(crate) use self::memberships::MembershipGrant;
use crate::rules::Rules;

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
    /// The requested extensions that the server has.
    pub extensions: BTreeMap<String, ExtensionFacts>,
    /// The administrator's powers over the role.
    pub powers: Powers,
}

/// An extension that the server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionFacts {
    /// Whether PostgreSQL trusts it to everybody who may create in the database.
    pub trusted: bool,
    /// The extensions that have to exist before.
    pub requires: Vec<String>,
}

/// Properties of a role.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct RoleFacts {
    pub oid: u32,
    pub login: bool,
    pub inherit: bool,
    pub create_database: bool,
    pub create_role: bool,
    pub replication: bool,
    pub bypass_rls: bool,
    pub superuser: bool,
    pub connection_limit: i32,
    /// VALID UNTIL, if it expires
    pub valid_until: Option<Timestamp>,
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
    pub replication: bool,
    pub bypass_rls: bool,
    pub create_role: bool,
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

const ROLE: &str = "\
SELECT r.oid, r.rolcanlogin, r.rolinherit, r.rolcreatedb, r.rolcreaterole, r.rolreplication, r.rolbypassrls, \
       r.rolsuper, r.rolconnlimit, \
       CASE WHEN pg_catalog.isfinite(r.rolvaliduntil) \
            THEN pg_catalog.round(extract(epoch FROM r.rolvaliduntil) * 1000000)::pg_catalog.int8 END, \
       pg_catalog.shobj_description(r.oid, 'pg_authid'), \
       (SELECT s.setconfig FROM pg_catalog.pg_db_role_setting s WHERE s.setdatabase = 0 AND s.setrole = r.oid) \
FROM pg_catalog.pg_roles r WHERE r.rolname = $1";

const STORED: &str = "SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1";

/// A role that may run programs, or read and write files, as the server can make itself superuser; a managed service
/// has its own superusers.
const EXISTING: &str = "\
SELECT found.name::pg_catalog.text, \
       pg_catalog.bool_or(r.rolsuper OR r.rolname IN ( \
         'pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files', 'rds_superuser', \
         'cloudsqlsuperuser', 'alloydbsuperuser', 'azure_pg_admin', 'neon_superuser')), \
       pg_catalog.bool_or(r.rolreplication), pg_catalog.bool_or(r.rolbypassrls), pg_catalog.bool_or(r.rolcreaterole), \
       pg_catalog.max(pg_catalog.shobj_description(found.oid, 'pg_authid')) FILTER (WHERE r.rolname = found.name) \
FROM (WITH RECURSIVE reach (name, oid) AS ( \
        SELECT rolname, oid FROM pg_catalog.pg_roles WHERE rolname = ANY ($1) \
        UNION SELECT reach.name, m.roleid FROM reach JOIN pg_catalog.pg_auth_members m ON m.member = reach.oid) \
      SELECT name, oid FROM reach) found \
JOIN pg_catalog.pg_roles r ON r.oid = found.oid GROUP BY found.name";

/// Both read much on the server, so they are run only if something is requested.
const PARAMETERS: &str = "\
SELECT pg_catalog.lower(name), context = 'user' FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = ANY ($1)";
const EXTENSIONS: &str = "\
SELECT v.name::pg_catalog.text, pg_catalog.bool_or(v.trusted), \
       coalesce(pg_catalog.max(v.requires::pg_catalog.text) FILTER (WHERE v.version = a.default_version), '{}')::pg_catalog.text[] \
FROM pg_catalog.pg_available_extension_versions v JOIN pg_catalog.pg_available_extensions a ON a.name = v.name \
WHERE v.name = ANY ($1) GROUP BY 1";
const NOTHING: &str = "SELECT WHERE false AND $1 = '{}'::pg_catalog.text[]";

/// The subjects of the queries.
pub(crate) struct CatalogQuery {
    /// The rules and marks.
    pub viewer: Viewer,
    pub role: String,
    /// Other roles of interest.
    pub roles: Vec<String>,
    pub databases: Vec<String>,
    /// The template database.
    pub template: Option<String>,
    pub parameters: Vec<String>,
    pub extensions: Vec<String>,
}

impl CatalogQuery {
    /// The number of queries.
    pub(crate) const ANSWERS: usize = 8;

    /// Queries for one role and nothing else.
    pub(crate) fn about(viewer: &Viewer, role: &str) -> Self {
        Self {
            viewer: viewer.clone(),
            role: role.to_owned(),
            roles: Vec::new(),
            databases: Vec::new(),
            template: None,
            parameters: Vec::new(),
            extensions: Vec::new(),
        }
    }

    /// The queries, for a pipeline.
    pub(crate) fn queries(&self) -> Vec<Query> {
        vec![
            Server::query(),
            Query::new(ROLE).text(&self.role),
            memberships::query(&self.role),
            Query::new(EXISTING).texts(self.roles.iter().chain([&self.role]).cloned().collect()),
            databases::query(self.databases.iter().chain(&self.template), &self.role),
            Powers::query(vec![self.role.clone()]),
            about(PARAMETERS, &self.parameters),
            about(EXTENSIONS, &self.extensions),
        ]
    }

    /// Decodes the answers to [`Self::queries`].
    pub(crate) fn answer(&self, results: &[Vec<Row>]) -> Result<Catalog, Unexpected> {
        let [
            server,
            role,
            memberships,
            existing,
            databases,
            powers,
            parameters,
            extensions,
        ] = results
        else {
            return Err(Unexpected);
        };
        let mut found: BTreeMap<String, DatabaseFacts> = databases
            .iter()
            .map(|row| databases::database(&self.viewer, row))
            .collect::<Result<_, _>>()?;
        let template = self.template.as_ref().and_then(|name| found.get(name).cloned());
        found.retain(|name, _| self.databases.contains(name));
        let parameters: BTreeMap<String, bool> = parameters
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, Unexpected>>()?;
        Ok(Catalog {
            viewer: self.viewer.clone(),
            server: Server::of_row(server.first().ok_or(Unexpected)?)?,
            role: role.first().map(|row| self.role_facts(row)).transpose()?,
            memberships: memberships
                .iter()
                .map(memberships::membership)
                .collect::<Result<_, _>>()?,
            existing: existing
                .iter()
                .map(|row| self.existing(row))
                .collect::<Result<_, _>>()?,
            databases: found,
            template,
            user_parameters: parameters
                .iter()
                .filter(|(_, user)| **user)
                .map(|(name, _)| name.clone())
                .collect(),
            parameters: parameters.into_keys().collect(),
            extensions: extensions
                .iter()
                .map(extension)
                .collect::<Result<_, Unexpected>>()?,
            powers: Powers::of_rows(powers)?
                .get(&self.role)
                .copied()
                .unwrap_or_default(),
        })
    }
}

/// Runs the queries in one round trip; a superuser reads the stored password in a second one.
pub(crate) async fn read(session: &ReadSession, query: &CatalogQuery) -> Result<Catalog, Problem> {
    let results = session.snapshot(&query.queries()).await?;
    let mut catalog = query.answer(&results)?;
    if let Some(role) = catalog
        .role
        .as_mut()
        .filter(|_| catalog.server.attributes.superuser)
    {
        let rows = session.query(&Query::new(STORED).text(&query.role)).await?;
        let stored = rows.first().map(|row| row.try_get(0)).transpose();
        let stored: Option<String> = stored.map_err(Unexpected::from)?.flatten();
        role.stored = stored.map_or(Stored::Nothing, |stored| Stored::Verifier(stored.into()));
    }
    Ok(catalog)
}

fn extension(row: &Row) -> Result<(String, ExtensionFacts), Unexpected> {
    let facts = ExtensionFacts {
        trusted: row.try_get(1)?,
        requires: row.try_get(2)?,
    };
    Ok((row.try_get(0)?, facts))
}

fn about(sql: &'static str, names: &[String]) -> Query {
    let sql = if names.is_empty() { NOTHING } else { sql };
    Query::new(sql).texts(names.to_vec())
}

impl CatalogQuery {
    fn role_facts(&self, row: &Row) -> Result<RoleFacts, Unexpected> {
        let until: Option<i64> = row.try_get(9)?;
        let comment: Option<String> = row.try_get(10)?;
        let settings: Option<Vec<String>> = row.try_get(11)?;
        let comment = comment.unwrap_or_default();
        let (text, mark) = self.viewer.marks.read(&comment, Bearer::Role(&self.role));
        let text = text.to_owned();
        Ok(RoleFacts {
            oid: row.try_get(0)?,
            login: row.try_get(1)?,
            inherit: row.try_get(2)?,
            create_database: row.try_get(3)?,
            create_role: row.try_get(4)?,
            replication: row.try_get(5)?,
            bypass_rls: row.try_get(6)?,
            superuser: row.try_get(7)?,
            connection_limit: row.try_get(8)?,
            valid_until: until.and_then(|micros| Timestamp::from_microsecond(micros).ok()),
            text,
            mark,
            comment,
            parameters: settings
                .unwrap_or_default()
                .iter()
                .filter_map(|setting| setting.split_once('='))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
            stored: Stored::Unreadable,
        })
    }

    fn existing(&self, row: &Row) -> Result<(String, RoleRef), Unexpected> {
        let name: String = row.try_get(0)?;
        let comment: Option<String> = row.try_get(5)?;
        let comment = comment.unwrap_or_default();
        let role = RoleRef {
            reach: Reach {
                superuser: row.try_get(1)?,
                replication: row.try_get(2)?,
                bypass_rls: row.try_get(3)?,
                create_role: row.try_get(4)?,
            },
            mark: self.viewer.marks.read(&comment, Bearer::Role(&name)).1,
        };
        Ok((name, role))
    }
}
