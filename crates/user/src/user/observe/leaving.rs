//! What there is of a role that shall go.

use std::collections::BTreeMap;

use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{Query, Row, Session};

use super::Observed;
use crate::server::{self, Server};
use crate::setup::Setup;
use crate::user::birthmark;
use crate::user::catalog::{Catalog, Question, Unexpected};
use crate::user::rotation;
use crate::user::target::Leaving;

/// What there is on the server.
pub struct Left {
    /// The server.
    pub server: Server,
    /// The role, and its two logins where it has them; those that are gone are not in it.
    pub roles: Vec<LeavingRole>,
    /// The databases that the operator made and that are still there.
    pub databases: Vec<String>,
}

/// One role that shall go.
pub struct LeavingRole {
    /// Its name.
    pub name: String,
    /// What the server says about it.
    pub catalog: Catalog,
    /// What depends on it, by database; the shared objects (databases themselves) are under `""`.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The databases that it owns.
    pub databases: Vec<String>,
}

/// What a role has in one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// Objects that it owns.
    pub owned: i64,
    /// Whether we can look there.
    pub open: bool,
    /// The database's owner.
    pub owner: String,
    /// Whether we may hand things to the owner.
    pub may_become_owner: bool,
}

const DEPENDENCIES: &str = "\
SELECT coalesce(d.datname::pg_catalog.text, ''), pg_catalog.count(*) FILTER (WHERE s.deptype = 'o'), \
       coalesce(pg_catalog.bool_and(d.datallowconn), true), \
       coalesce(pg_catalog.max(pg_catalog.pg_get_userbyid(d.datdba)::pg_catalog.text), ''), \
       coalesce(pg_catalog.bool_and(pg_catalog.pg_has_role(d.datdba, 'USAGE') \
         AND pg_catalog.pg_has_role(d.datdba, CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 \
             >= 160000 THEN 'SET' ELSE 'MEMBER' END)), false) \
FROM pg_catalog.pg_shdepend s JOIN pg_catalog.pg_roles r ON r.oid = s.refobjid AND r.rolname = $1 \
LEFT JOIN pg_catalog.pg_database d ON d.oid = s.dbid \
WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass GROUP BY d.datname";

const OWNED_DATABASES: &str = "\
SELECT d.datname::pg_catalog.text FROM pg_catalog.pg_database d \
JOIN pg_catalog.pg_roles r ON r.oid = d.datdba WHERE r.rolname = $1 ORDER BY 1";

const DATABASES: &str = "SELECT datname::pg_catalog.text, oid FROM pg_catalog.pg_database";

/// Looks at what is left.
pub async fn observe(setup: &Setup, read: &Reader, leaving: &Leaving) -> Result<Observed, Problem> {
    // No pass ever came as far as the database, or a person has given the role up.
    let (Some(username), false) = (&leaving.username, leaving.released) else {
        return Ok(Observed::Nothing);
    };
    let server = match server::resolve(read, setup, leaving.instance.as_ref()).await {
        // There is no server that anything could have been made on.
        Err(problem) if leaving.before.username.is_none() && problem.reason == "InstanceNotFound" => {
            return Ok(Observed::Nothing);
        }
        other => other?,
    };
    // The administrator's database: the object's own one may be gone, or let nobody in.
    let session = setup.pools.get(&server.target).await?;
    let mut roles = Vec::new();
    // The logins go first: they are members of the role.
    let logins = rotation::login_names(username);
    let before = &leaving.before;
    let dual = before.active_login.is_some() || !before.retiring_logins.is_empty();
    for name in logins.iter().filter(|_| dual).chain(std::iter::once(username)) {
        roles.extend(look(&session, name, leaving).await?);
    }
    let databases = made(&session, &leaving.identity.uid).await?;
    Ok(Observed::Leaving(Box::new(Left {
        server,
        roles,
        databases,
    })))
}

/// The databases that the object made, whatever its status remembers.
async fn made(session: &Session, uid: &str) -> Result<Vec<String>, Problem> {
    let mut made = Vec::new();
    for row in session.query(&Query::new(DATABASES)).await? {
        let (name, oid): (String, u32) = both(&row)?;
        if oid == birthmark::oid(uid, &name) {
            made.push(name);
        }
    }
    Ok(made)
}

fn both(row: &Row) -> Result<(String, u32), Unexpected> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

fn names(rows: &[Row]) -> Result<Vec<String>, Unexpected> {
    let names = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(names)
}

/// Looks at one role; `None` when it is gone.
pub async fn look(session: &Session, name: &str, leaving: &Leaving) -> Result<Option<LeavingRole>, Problem> {
    let question = Question {
        role: name.to_owned(),
        roles: leaving.on_delete.reassign_to.iter().cloned().collect(),
        databases: Vec::new(),
    };
    let mut queries = question.queries();
    queries.extend([DEPENDENCIES, OWNED_DATABASES].map(|sql| Query::new(sql).text(name)));
    let mut results = session.snapshot(&queries).await?;
    let databases = results.pop().unwrap_or_default();
    let dependencies = results.pop().unwrap_or_default();
    let catalog = question.answer(&results)?;
    if catalog.role.is_none() {
        return Ok(None);
    }
    let dependencies = dependencies.iter().map(dependency).collect::<Result<_, _>>()?;
    Ok(Some(LeavingRole {
        name: name.to_owned(),
        catalog,
        dependencies,
        databases: names(&databases)?,
    }))
}

fn dependency(row: &Row) -> Result<(String, Dependency), Unexpected> {
    let facts = Dependency {
        owned: row.try_get(1)?,
        open: row.try_get(2)?,
        owner: row.try_get(3)?,
        may_become_owner: row.try_get(4)?,
    };
    Ok((row.try_get(0)?, facts))
}
