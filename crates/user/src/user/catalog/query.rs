//! The catalog queries, in one round trip, and their decoding.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::Bearer;
use stanchion_postgres::server::Powers;
use stanchion_postgres::{Query, ReadSession, Row, Server};

use super::{
    Catalog, DatabaseFacts, MembershipFacts, Reach, RoleFacts, RoleRef, Stored, Unexpected, Viewer, exploded,
};
use crate::rules::Whose;

const ROLE: &str = "\
SELECT r.oid, r.rolcanlogin, r.rolinherit, r.rolcreatedb, r.rolcreaterole, r.rolreplication, r.rolbypassrls, \
       r.rolsuper, r.rolconnlimit, \
       CASE WHEN pg_catalog.isfinite(r.rolvaliduntil) \
            THEN pg_catalog.round(extract(epoch FROM r.rolvaliduntil) * 1000000)::pg_catalog.int8 END, \
       pg_catalog.shobj_description(r.oid, 'pg_authid'), \
       (SELECT s.setconfig FROM pg_catalog.pg_db_role_setting s WHERE s.setdatabase = 0 AND s.setrole = r.oid) \
FROM pg_catalog.pg_roles r WHERE r.rolname = $1";

const STORED: &str = "SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1";

/// Several grantors may have granted one membership; its strongest options apply. `to_jsonb` because the columns of the
/// options are new in PostgreSQL 16.
const MEMBERSHIPS: &str = "\
SELECT pg_catalog.pg_get_userbyid(m.roleid)::pg_catalog.text, pg_catalog.bool_or(m.admin_option), \
       pg_catalog.bool_or((pg_catalog.to_jsonb(m) ->> 'inherit_option')::pg_catalog.bool), \
       pg_catalog.bool_or((pg_catalog.to_jsonb(m) ->> 'set_option')::pg_catalog.bool), \
       pg_catalog.array_agg(pg_catalog.pg_get_userbyid(m.grantor)::pg_catalog.text ORDER BY m.grantor) \
FROM pg_catalog.pg_auth_members m \
WHERE m.member = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $1) GROUP BY m.roleid";

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

/// An owner's own privileges are in the ACL only after somebody has changed it; `acldefault` adds them.
const DATABASES: &str = concat!(
    "SELECT d.datname::pg_catalog.text, pg_catalog.pg_get_userbyid(d.datdba)::pg_catalog.text, d.datallowconn, \
       coalesce(held.ours, '{}'), coalesce(held.public, '{}'), pg_catalog.pg_has_role(d.datdba, 'USAGE'), d.oid, d.datistemplate, \
       coalesce(pg_catalog.shobj_description(d.oid, 'pg_database'), ''), \
       coalesce(pg_catalog.shobj_description(d.datdba, 'pg_authid'), '') \
     FROM pg_catalog.pg_database d CROSS JOIN LATERAL ( \
       SELECT pg_catalog.array_agg(a.privilege_type) FILTER (WHERE a.grantee <> 0) AS ours, \
              pg_catalog.array_agg(a.privilege_type) FILTER (WHERE a.grantee = 0) AS public FROM ",
    exploded!("coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))"),
    " a WHERE a.grantee IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $2))) held \
     WHERE d.datname = ANY ($1)"
);

/// Both read much on the server, so they are run only if something is requested.
const PARAMETERS: &str = "\
SELECT pg_catalog.lower(name), context = 'user' FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = ANY ($1)";
const EXTENSIONS: &str = "\
SELECT name::pg_catalog.text, pg_catalog.bool_or(trusted) FROM pg_catalog.pg_available_extension_versions \
WHERE name = ANY ($1) GROUP BY 1";
const NOTHING: &str = "SELECT WHERE false AND $1 = '{}'::pg_catalog.text[]";

/// The subjects of the queries.
pub struct CatalogQuery {
    /// The rules and marks.
    pub viewer: Viewer,
    /// The role.
    pub role: String,
    /// Other roles of interest.
    pub roles: Vec<String>,
    /// Databases.
    pub databases: Vec<String>,
    /// The template database.
    pub template: Option<String>,
    /// Parameters.
    pub parameters: Vec<String>,
    /// Extensions.
    pub extensions: Vec<String>,
}

impl CatalogQuery {
    /// The number of queries.
    pub const ANSWERS: usize = 8;

    /// Queries for one role and nothing else.
    pub fn about(viewer: &Viewer, role: &str) -> Self {
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
    pub fn queries(&self) -> Vec<Query> {
        vec![
            Server::query(),
            Query::new(ROLE).text(&self.role),
            Query::new(MEMBERSHIPS).text(&self.role),
            Query::new(EXISTING).texts(self.roles.iter().chain([&self.role]).cloned().collect()),
            Query::new(DATABASES)
                .texts(self.databases.iter().chain(&self.template).cloned().collect())
                .text(&self.role),
            Powers::query(vec![self.role.clone()]),
            about(PARAMETERS, &self.parameters),
            about(EXTENSIONS, &self.extensions),
        ]
    }

    /// The query for the stored password, if the administrator may read it.
    pub fn stored_query(&self) -> Query {
        Query::new(STORED).text(&self.role)
    }

    /// Decodes the answers to [`Self::queries`].
    pub fn answer(&self, results: &[Vec<Row>]) -> Result<Catalog, Unexpected> {
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
            .map(|row| self.database(row))
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
            memberships: memberships.iter().map(membership).collect::<Result<_, _>>()?,
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
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                .collect::<Result<_, Unexpected>>()?,
            powers: Powers::of_rows(powers)?
                .get(&self.role)
                .copied()
                .unwrap_or_default(),
        })
    }
}

/// Runs the queries in one round trip; a superuser reads the stored password in a second one.
pub async fn read(session: &ReadSession, query: &CatalogQuery) -> Result<Catalog, Problem> {
    let results = session.snapshot(&query.queries()).await?;
    let catalog = query.answer(&results)?;
    if !catalog.server.attributes.superuser || catalog.role.is_none() {
        return Ok(catalog);
    }
    let rows = session.query(&query.stored_query()).await?;
    Ok(catalog.with_stored(Some(&rows))?)
}

fn membership(row: &Row) -> Result<(String, MembershipFacts), Unexpected> {
    let facts = MembershipFacts {
        admin: row.try_get(1)?,
        inherit: row.try_get(2)?,
        set: row.try_get(3)?,
        grantors: row.try_get(4)?,
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

    fn database(&self, row: &Row) -> Result<(String, DatabaseFacts), Unexpected> {
        let words = |column: usize| -> Result<BTreeSet<String>, Unexpected> {
            let words: Vec<String> = row.try_get(column)?;
            Ok(words.into_iter().collect())
        };
        let (name, owner): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (comment, of_owner): (String, String) = (row.try_get(8)?, row.try_get(9)?);
        let marks = &self.viewer.marks;
        let (text, mark) = marks.read(&comment, Bearer::Database(&name));
        let owner_mark = marks.read(&of_owner, Bearer::Role(&owner)).1;
        let acting: bool = row.try_get(5)?;
        let facts = DatabaseFacts {
            acting: acting && self.viewer.rules.whose(owner_mark.as_ref()) != Whose::Theirs,
            owner,
            open: row.try_get(2)?,
            granted: words(3)?,
            public: words(4)?,
            oid: row.try_get(6)?,
            template: row.try_get(7)?,
            text: text.to_owned(),
            mark,
            owner_mark,
        };
        Ok((name, facts))
    }
}
