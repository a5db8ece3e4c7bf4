//! Takes away what was made in a database, for a project that asks for that when it is deleted.
//!
//! The internal database goes first, because PostgreSQL drops one outside of any transaction; then everything else in
//! one transaction, the record included. Killed between the two, it goes on from there; killed within, nothing has
//! happened. What others use stays, and is named.

use std::time::Duration;

use stanchion_kernel::Problem;
use stanchion_postgres::{Begin, Pools, Query, Row, Session, Statement, Target, lock};

use super::catalog::{self, Catalog, Source};
use super::plan;
use super::roles::Names;

/// How long to wait for others who change the same database or server.
const TURN: Duration = Duration::from_secs(20);

/// Whether somebody keeps something of his own in the internal database.
const FOREIGN: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', '_analytics', '_supavisor') \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e'))";
const IS_MADE: &str = "SELECT EXISTS (SELECT FROM _stanchion.made WHERE kind = 'database' AND name = $1)";
const LEFT: &str = "SELECT pg_catalog.current_setting('stanchion.left')";

/// Takes everything away that this project has made, and says what it had to leave. Nothing happens in a database that is
/// not this project's, or not any more.
pub async fn remove(pools: &Pools, target: &Target, project: &str) -> Result<Vec<String>, Problem> {
    let (_turns, mut session) = pools.exclusive_on_server(target, TURN).await?;
    let answers = session.snapshot(&catalog::questions(project)).await?;
    let Some(catalog) = catalog::read(&Source::Session(&session), project, &answers).await? else {
        return Ok(Vec::new());
    };
    let Some(names) = names(&catalog, project) else {
        return Ok(Vec::new());
    };
    let mut left = Vec::new();
    let internal = names.internal_database();
    if catalog.database.internal.contains(&internal) && is_true(&mut session, IS_MADE, &internal).await? {
        left.extend(drop_database(pools, target, &mut session, &internal).await?);
    }
    let begin = Begin {
        lock: Some(lock::ROLES),
        lock_wait: Some(TURN),
        ..Begin::default()
    };
    let (mut transaction, _) = session.begin(&begin, &[]).await?;
    let remove = Statement::new("DO $stanchion$ ")
        .sql(include_str!("removal.sql"))
        .sql(" $stanchion$");
    let said = transaction
        .apply_and_read(&[plan::settings(&names), remove], &[Query::new(LEFT)])
        .await?;
    transaction.commit(&[]).await?;
    let said: String = first(&said).unwrap_or_default();
    left.extend(
        said.split("; ")
            .filter(|text| !text.is_empty())
            .map(str::to_owned),
    );
    tracing::info!(server = %target, database = target.database(), ?left, "what was made in the database is removed");
    Ok(left)
}

/// The names of the project's roles, if the database is its own.
fn names(catalog: &Catalog, project: &str) -> Option<Names> {
    let (owner, suffix) = catalog.installation.as_ref()?;
    (owner == project).then(|| Names::with_suffix(suffix))
}

/// Drops the internal database, unless somebody else keeps something there.
async fn drop_database(
    pools: &Pools,
    target: &Target,
    session: &mut Session,
    name: &str,
) -> Result<Option<String>, Problem> {
    let there = target
        .with_database(name)
        .map_err(|error| Problem::permanent("InvalidDatabase", error.to_string()).caused_by(error))?;
    let looking = pools.get(&there).await?;
    let rows = looking.query(&Query::new(FOREIGN)).await?;
    drop(looking);
    if rows.first().is_none_or(|row| row.try_get(0).unwrap_or(true)) {
        return Ok(Some(format!("database {name}: somebody else has tables there")));
    }
    let drop = Statement::new("DROP DATABASE IF EXISTS ")
        .ident(name)
        .sql(" WITH (FORCE)");
    session.execute(&drop).await?;
    Ok(None)
}

async fn is_true(session: &mut Session, question: &'static str, name: &str) -> Result<bool, Problem> {
    let rows = session.query(&Query::new(question).text(name)).await?;
    Ok(rows.first().is_some_and(|row| row.try_get(0).unwrap_or_default()))
}

fn first(answers: &[Vec<Row>]) -> Option<String> {
    answers.first()?.first()?.try_get(0).ok()
}
