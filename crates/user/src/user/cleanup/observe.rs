//! Reads the state of a role to remove.

use std::collections::BTreeMap;

use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{Query, ReadSession, Row};

use super::CleanupTarget;
use crate::server::{self, Access, Server, Setup};
use crate::user::catalog::databases::DatabaseFacts;
use crate::user::catalog::{self, Catalog, CatalogQuery, Unexpected, Viewer};
use crate::user::guards;
use crate::user::target::login_names;

/// The state of the server.
pub struct CleanupState {
    pub server: Server,
    /// The role, and its two logins if it has them; only those that exist.
    pub roles: Vec<CleanupRole>,
    /// The existing databases that the operator created.
    pub databases: Vec<String>,
}

/// One role to remove.
pub struct CleanupRole {
    pub name: String,
    /// The server's catalog of it.
    pub catalog: Catalog,
    /// Its dependencies, by database; shared objects (databases themselves) are under `""`.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The databases that it owns, with their oids.
    pub databases: Vec<(String, u32)>,
}

/// The dependencies of a role in one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// Number of objects that it owns.
    pub owned: i64,
    /// Whether the database accepts connections.
    pub open: bool,
    /// The database's oid.
    pub oid: u32,
}

const DEPENDENCIES: &str = "\
SELECT coalesce(d.datname::pg_catalog.text, ''), pg_catalog.count(*) FILTER (WHERE s.deptype = 'o'), \
       coalesce(pg_catalog.bool_and(d.datallowconn), true), coalesce(d.oid, 0::pg_catalog.oid) \
FROM pg_catalog.pg_shdepend s JOIN pg_catalog.pg_roles r ON r.oid = s.refobjid AND r.rolname = $1 \
LEFT JOIN pg_catalog.pg_database d ON d.oid = s.dbid \
WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass GROUP BY d.datname, d.oid";

/// The same now, in the session's database and on the server itself.
const OWNED: &str = "\
SELECT pg_catalog.count(*) FILTER (WHERE s.dbid = d.oid), pg_catalog.count(*) FILTER (WHERE s.dbid = 0) \
FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.rolname = $1 \
JOIN pg_catalog.pg_shdepend s ON s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = r.oid \
  AND s.deptype = 'o' WHERE d.datname = pg_catalog.current_database()";

const OWNED_DATABASES: &str = "\
SELECT d.datname::pg_catalog.text, d.oid FROM pg_catalog.pg_database d \
JOIN pg_catalog.pg_roles r ON r.oid = d.datdba WHERE r.rolname = $1 ORDER BY 1";

const DATABASES: &str = "SELECT datname::pg_catalog.text FROM pg_catalog.pg_database";

/// Reads what is left of a role; `None` if there is nothing to remove.
pub(super) async fn observe(
    setup: &Setup,
    read: &Reader,
    cleanup: &CleanupTarget,
) -> Result<Option<CleanupState>, Problem> {
    // No reconcile ever reached the database, or a person has released the role.
    let (Some(username), false) = (&cleanup.username, cleanup.released) else {
        return Ok(None);
    };
    let provisioned = cleanup.before.username.is_some();
    // Objects on a server that may no longer be used are removed nevertheless.
    let server = match server::resolve_for_cleanup(read, setup, cleanup.instance.as_ref(), provisioned).await
    {
        Ok(Access::Open(server) | Access::Withdrawn(server)) => server,
        // There is no server on which anything could have been created.
        Err(problem) if !provisioned && problem.is(Cause::InstanceMissing) => return Ok(None),
        Err(problem) => return Err(problem),
    };
    // The administrator's database: the object's own one may be gone, or refuse connections.
    let session = setup.pools.read_only(&server.target).await?;
    let mut roles = Vec::new();
    // The logins are removed first: they are members of the role.
    let logins = login_names(username);
    let before = &cleanup.before;
    let dual = before.active_login.is_some() || !before.retiring_logins.is_empty();
    for name in logins.iter().filter(|_| dual).chain(std::iter::once(username)) {
        roles.extend(read_role(&session, &server.viewer, name, cleanup).await?);
    }
    let databases = made(&session, &server.viewer, username, cleanup).await?;
    Ok(Some(CleanupState {
        server,
        roles,
        databases,
    }))
}

/// The databases that the object created, independent of its status.
async fn made(
    session: &ReadSession,
    viewer: &Viewer,
    username: &str,
    cleanup: &CleanupTarget,
) -> Result<Vec<String>, Problem> {
    let rows = session.query(&Query::new(DATABASES)).await?;
    let query = CatalogQuery {
        databases: names(&rows)?,
        ..CatalogQuery::about(viewer, username)
    };
    let catalog = catalog::read(session, &query).await?;
    let owners = [catalog.server.role.as_str(), username];
    let is_ours = |(name, facts): &(&String, &DatabaseFacts)| {
        guards::is_own_database(&viewer.marks, &cleanup.identity, name, facts, owners)
    };
    let made = catalog
        .databases
        .iter()
        .filter(is_ours)
        .map(|(name, _)| name.clone());
    Ok(made.collect())
}

fn names(rows: &[Row]) -> Result<Vec<String>, Unexpected> {
    let names = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(names)
}

fn owned_database(row: &Row) -> Result<(String, u32), Unexpected> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// The query for what a role owns where the session is, for the transaction that removes it.
pub(super) fn owned(role: &str) -> Query {
    Query::new(OWNED).text(role)
}

/// The number of objects that removing the role here would drop. Shared objects (under the oid 0) come last, and with
/// them what was made in this database since its turn.
pub(super) fn owned_here(rows: Option<&[Row]>, database: u32) -> Result<i64, Unexpected> {
    let Some(row) = rows.and_then(<[Row]>::first) else {
        return Ok(0);
    };
    let (here, shared): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    Ok(if database == 0 { here + shared } else { here })
}

/// Reads one role; `None` if it is gone.
pub(super) async fn read_role(
    session: &ReadSession,
    viewer: &Viewer,
    name: &str,
    cleanup: &CleanupTarget,
) -> Result<Option<CleanupRole>, Problem> {
    let query = CatalogQuery {
        roles: cleanup.on_delete.reassign_to.iter().cloned().collect(),
        ..CatalogQuery::about(viewer, name)
    };
    let mut queries = query.queries();
    queries.extend([DEPENDENCIES, OWNED_DATABASES].map(|sql| Query::new(sql).text(name)));
    let mut results = session.snapshot(&queries).await?;
    let databases = results.pop().unwrap_or_default();
    let dependencies = results.pop().unwrap_or_default();
    let catalog = query.answer(&results)?;
    if catalog.role.is_none() {
        return Ok(None);
    }
    let dependencies = dependencies.iter().map(dependency).collect::<Result<_, _>>()?;
    Ok(Some(CleanupRole {
        name: name.to_owned(),
        catalog,
        dependencies,
        databases: databases.iter().map(owned_database).collect::<Result<_, _>>()?,
    }))
}

fn dependency(row: &Row) -> Result<(String, Dependency), Unexpected> {
    let facts = Dependency {
        owned: row.try_get(1)?,
        open: row.try_get(2)?,
        oid: row.try_get(3)?,
    };
    Ok((row.try_get(0)?, facts))
}
