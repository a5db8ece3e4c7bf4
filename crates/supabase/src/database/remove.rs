//! Removes what was created in a database, for a deleted project with `deletionPolicy: Delete`.
//!
//! The internal database is dropped first, because PostgreSQL drops a database outside of any transaction; then
//! everything else in one transaction, including the record. A process that is killed between the two continues from
//! there; one that is killed within has changed nothing. Objects that others use stay, and are reported.

use std::collections::BTreeSet;
use std::sync::Arc;

use stanchion_kernel::Problem;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::handover::{self, Disarmed, Keeper, KeeperFacts};
use stanchion_postgres::{
    Begin, ConnectionConfig, Doing, Pools, Query, Row, RowError, Server, Session, Statement, Transaction,
    lock,
};

use super::catalog::{self, Catalog, Source};
use super::created_objects;
use super::isolation;
use super::mark;
use super::ownership;
use super::pending;
use super::roles::{Login, Names};

/// Whether somebody else has objects in the internal database.
const FOREIGN: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', '_analytics', '_supavisor') \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e'))";
const IS_MADE: &str = "SELECT EXISTS (SELECT FROM _stanchion.made WHERE kind = 'database' AND name = $1)";
/// The roles of this project that are dropped with it.
const LEAVING: &str = "SELECT m.name FROM _stanchion.made m JOIN pg_catalog.pg_roles r ON r.rolname = m.name \
    WHERE m.kind = 'role' AND NOT r.rolsuper AND r.rolname <> current_user ORDER BY 1";
/// Objects of the keeper role that could have run with their owner's privileges.
const STAYS: &str = "\
    SELECT pg_catalog.format('function %s', p.oid::pg_catalog.regprocedure) FROM pg_catalog.pg_proc p \
    JOIN pg_catalog.pg_roles r ON r.oid = p.proowner WHERE r.rolname = $1 \
    UNION ALL SELECT pg_catalog.format('view %s', c.oid::pg_catalog.regclass) FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_roles r ON r.oid = c.relowner WHERE r.rolname = $1 AND c.relkind = 'v' \
    UNION ALL SELECT pg_catalog.format('publication %I', p.pubname) FROM pg_catalog.pg_publication p \
    JOIN pg_catalog.pg_roles r ON r.oid = p.pubowner WHERE r.rolname = $1";
/// The comment of the keeper role.
const KEPT: &str = "Keeps what people made in a Supabase project that is gone. It has no rights.";
pub(super) const LEFT: &str = "SELECT pg_catalog.current_setting('stanchion.left')";

/// Removes everything that this project created, and returns what it had to leave. Does nothing in a database that is
/// not, or no longer, this project's.
pub async fn remove(
    pools: &Pools,
    target: &ConnectionConfig,
    project: &str,
    key: &Arc<FingerprintKey>,
) -> Result<Vec<String>, Problem> {
    let (_turns, mut session) = pools.exclusive_on_server(target, lock::TURN).await?;
    let answers = session.snapshot(&catalog::questions(project)).await?;
    let Some(catalog) = catalog::read(&Source::Session(&session), project, &answers).await? else {
        return Ok(Vec::new());
    };
    let Some(names) = names(&catalog, project) else {
        return Ok(Vec::new());
    };
    let mut left = Vec::new();
    let internal = names.internal_database();
    // By its oid, if the process was killed before it was recorded.
    let oid = created_objects::database_oid(project, catalog.database.oid, &internal);
    let found = catalog.database.internal.get(&internal);
    if let Some(found) = found
        && (found.oid == oid || is_true(&mut session, IS_MADE, &internal).await?)
    {
        left.extend(drop_database(pools, target, &mut session, &internal).await?);
    }
    let begin = Begin {
        lock: Some(lock::ROLES),
        lock_wait: Some(lock::TURN),
        ..Begin::default()
    };
    let (transaction, answers) = session.begin(&begin, &catalog::questions(project)).await?;
    let source = Source::Transaction(&transaction);
    let Some(catalog) = catalog::read(&source, project, &answers).await? else {
        return Ok(Vec::new());
    };
    isolation::check_steps(&catalog.found, &catalog.server, &names, [])?;
    let keeper = Keeper::of(catalog.database.oid, project);
    let record = Record {
        cleared: created_objects::forget_others(&names, &logins_of_others(&catalog, &names, project, key)),
        unmarked: unmarks(&catalog, project, key),
    };
    left.extend(take_away(transaction, &catalog.server, &names, &keeper, record).await?);
    tracing::info!(server = %target, database = target.database(), ?left, "what the operator created in the database is removed");
    Ok(left)
}

/// The first and the last statement of a removal.
struct Record {
    /// Removes from the record what it must not contain.
    cleared: Statement,
    /// Removes the project's mark from the databases that stay.
    unmarked: Vec<Statement>,
}

/// Removes the project's mark from its database, and from the internal ones that stay. Only an owner may comment on a
/// database.
fn unmarks(catalog: &Catalog, project: &str, key: &Arc<FingerprintKey>) -> Vec<Statement> {
    let database = &catalog.database;
    let internal = database.internal.iter().filter(|(_, found)| found.ours);
    internal
        .map(|(name, found)| (name, &found.comment))
        .chain([(&database.name, &database.comment)])
        .filter_map(|(name, comment)| ownership::unmark(name, comment, project, key))
        .collect()
}

/// The project's logins by name that are marked as another project's, or whose mark is forged.
fn logins_of_others(catalog: &Catalog, names: &Names, project: &str, key: &FingerprintKey) -> Vec<String> {
    let logins = Login::ALL.into_iter().map(|login| names.of(login));
    let is_theirs = |name: &String| {
        let facts = catalog.roles.get(name);
        let mark = facts.and_then(|facts| mark::split(&facts.comment).1);
        mark.is_some_and(|mark| mark.project != project || mark.is_forged(name, key))
    };
    logins.filter(is_theirs).collect()
}

/// Removes everything in one transaction, and returns what had to stay.
async fn take_away(
    mut transaction: Transaction<'_>,
    server: &Server,
    names: &Names,
    keeper: &Keeper,
    record: Record,
) -> Result<Vec<String>, Problem> {
    transaction.apply_and_read(&[record.cleared], &[]).await?;
    let (leaving, keeper, has_keeper) = who_leaves(&transaction, keeper).await?;
    // From here on nobody can create anything new. Objects are disarmed before they are reassigned, and once more
    // afterwards, because a session may have ended late.
    let armed: Vec<Query> = leaving.iter().map(|role| handover::armed(role)).collect();
    let rows = transaction
        .apply_and_read(&[block(include_str!("removal_logins.sql"))], &armed)
        .await?;
    let mut disarmed = Vec::new();
    for rows in &rows {
        let found = Disarmed::of_rows(rows).map_err(|error| not_understood(&transaction, &error))?;
        disarmed.extend(found.some);
    }
    let mut statements: Vec<Statement> = leaving.iter().flat_map(|role| handover::disarm(role)).collect();
    if !has_keeper {
        statements.extend(keeper.make(KEPT));
        statements.extend(handover::join(keeper.name(), server));
    }
    statements.extend([
        pending::settings(names),
        Statement::new("SELECT pg_catalog.set_config('stanchion.keeper', ")
            .literal(keeper.name())
            .sql(", true)"),
        block(include_str!("removal.sql")),
    ]);
    statements.extend(handover::disarm(keeper.name()));
    statements.push(block(include_str!("removal_keeper.sql")));
    statements.extend(record.unmarked);
    let stays = Query::new(STAYS).text(keeper.name());
    let said = transaction
        .apply_and_read(&statements, &[Query::new(LEFT), stays])
        .await?;
    transaction.commit(&[]).await?;
    let stays = said.get(1).into_iter().flatten();
    let stays: BTreeSet<String> = stays.filter_map(|row| row.try_get(0).ok()).collect();
    let disarmed = disarmed.into_iter().filter(|what| stays.contains(what));
    let disarmed = disarmed
        .map(|what| format!("{what}: it ran with the privileges of a deleted login, and was disarmed"));
    Ok(disarmed.chain(left(&said)).collect())
}

/// The roles to drop, the keeper of what they own, and whether the keeper exists.
async fn who_leaves(
    transaction: &Transaction<'_>,
    keeper: &Keeper,
) -> Result<(Vec<String>, Keeper, bool), Problem> {
    let answers = transaction.read(&[Query::new(LEAVING), keeper.query()]).await?;
    let rows = |index: usize| answers.get(index).map(Vec::as_slice).unwrap_or_default();
    let leaving = rows(0).iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
    let leaving = leaving.map_err(|error| not_understood(transaction, &error))?;
    let found = Keeper::facts(rows(1)).map_err(|error| not_understood(transaction, &error))?;
    let Some((keeper, is_there)) = keeper.choose(&found, KeeperFacts::powerless) else {
        let message = format!(
            "role {:?}, which would keep what people made in Studio, and those that could take its place can log in or have \
             attributes: rename one of them",
            keeper.name()
        );
        return Err(Problem::human("RoleNotManageable", message));
    };
    Ok((leaving, keeper, is_there))
}

fn not_understood(transaction: &Transaction<'_>, error: &RowError) -> Problem {
    transaction.session().error(Doing::Reading, error).into()
}

/// The names of the project's roles, if the project owns the database.
fn names(catalog: &Catalog, project: &str) -> Option<Names> {
    let (owner, suffix) = catalog.installation.as_ref()?;
    (owner == project).then(|| Names::with_suffix(suffix))
}

/// Drops the internal database, unless somebody else has objects there.
pub(super) async fn drop_database(
    pools: &Pools,
    target: &ConnectionConfig,
    session: &mut Session,
    name: &str,
) -> Result<Option<String>, Problem> {
    let there = target
        .with_database(name)
        .map_err(|error| Problem::permanent("InvalidDatabase", error.to_string()).caused_by(error))?;
    let looking = pools.read_only(&there).await?;
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

pub(super) fn block(text: &'static str) -> Statement {
    Statement::new("DO $stanchion$ ").sql(text).sql(" $stanchion$")
}

async fn is_true(session: &mut Session, question: &'static str, name: &str) -> Result<bool, Problem> {
    let rows = session.query(&Query::new(question).text(name)).await?;
    Ok(rows.first().is_some_and(|row| row.try_get(0).unwrap_or_default()))
}

/// What a block had to leave, from the answer to [`LEFT`].
pub(super) fn left(answers: &[Vec<Row>]) -> Vec<String> {
    let row = answers.first().and_then(|rows| rows.first());
    let text: String = row.and_then(|row| row.try_get(0).ok()).unwrap_or_default();
    let parts = text.split("; ").filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}
