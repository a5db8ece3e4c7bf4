//! Removes what a deleted project still has on the server when somebody has dropped its database: the logins and the
//! internal database. The record of what the operator created is gone with the database, so the sealed marks of the
//! logins decide.

use std::collections::{BTreeMap, BTreeSet};

use stanchion_kernel::Problem;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::{Begin, ConnectionConfig, Doing, Kind, Pools, Query, Statement, lock};

use super::catalog::{self, Internal, RoleFacts};
use super::created_objects;
use super::mark;
use super::remove::{LEFT, block, drop_database, left};

/// A database that every server has, unless somebody dropped it.
const HOME: &str = "postgres";

/// What is left of a project.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orphans {
    logins: BTreeSet<String>,
    databases: BTreeSet<String>,
}

/// Removes the logins and the internal database of a project whose database does not exist, and returns what it had to
/// leave.
pub async fn remove_orphans(
    pools: &Pools,
    target: &ConnectionConfig,
    project: &str,
    key: &FingerprintKey,
) -> Result<Vec<String>, Problem> {
    let home = target
        .with_database(HOME)
        .map_err(|error| Problem::permanent("InvalidDatabase", error.to_string()).caused_by(error))?;
    let (_turns, mut session) = match pools.exclusive_on_server(&home, lock::TURN).await {
        // The administrator may have access to its own database only. A deletion does not wait for that.
        Err(error) if error.kind() == Kind::Server => {
            return Ok(vec![format!("logins of {project}: {error}")]);
        }
        taken => taken?,
    };
    let answers = session.snapshot(&catalog::on_server(project)).await?;
    let rows = |index: usize| answers.get(index).map(Vec::as_slice).unwrap_or_default();
    let found =
        catalog::internal_of(rows(0)).and_then(|internal| Ok((internal, catalog::roles_of(rows(1))?)));
    let (internal, roles) = found.map_err(|error| session.error(Doing::Reading, &error))?;
    let orphans = orphans(&roles, &internal, project, key);
    if orphans.logins.is_empty() {
        return Ok(Vec::new());
    }
    let mut remains = Vec::new();
    for database in &orphans.databases {
        remains.extend(drop_database(pools, target, &mut session, database).await?);
    }
    let begin = Begin {
        lock: Some(lock::ROLES),
        lock_wait: Some(lock::TURN),
        ..Begin::default()
    };
    let (mut transaction, _) = session.begin(&begin, &[]).await?;
    let logins: Vec<&str> = orphans.logins.iter().map(String::as_str).collect();
    let named = Statement::new("SELECT pg_catalog.set_config('stanchion.orphans', ")
        .literal(&logins.join(","))
        .sql(", true)");
    let said = transaction
        .apply_and_read(&[named, block(include_str!("orphans.sql"))], &[Query::new(LEFT)])
        .await?;
    transaction.commit(&[]).await?;
    remains.extend(left(&said));
    tracing::info!(server = %target, left = ?remains, "the database is gone, and what the project had beside it is removed");
    Ok(remains)
}

/// The logins that the operator created for a database of this project that is gone, and the internal database of that one.
fn orphans(
    roles: &BTreeMap<String, RoleFacts>,
    internal: &BTreeMap<String, Internal>,
    project: &str,
    key: &FingerprintKey,
) -> Orphans {
    let mut orphans = Orphans::default();
    for (name, facts) in roles {
        let (_, mark) = mark::split(&facts.comment);
        let mark = mark.filter(|mark| mark.proves_creation(name, project, key));
        let is_lost = !facts.marked_database_exists && !facts.superuser;
        let Some(mark) = mark.filter(|_| is_lost) else {
            continue;
        };
        orphans.logins.insert(name.clone());
        let of_that_one = internal.iter().filter(|(name, found)| {
            found.oid == created_objects::database_oid(project, mark.database_oid, name)
        });
        orphans
            .databases
            .extend(of_that_one.map(|(name, _)| name.clone()));
    }
    orphans
}

#[cfg(test)]
mod tests {
    use super::super::mark::Mark;
    use super::*;

    #[test]
    fn only_what_was_created_for_a_database_that_is_gone_is_an_orphan() {
        let (key, other_key) = (FingerprintKey::generate(), FingerprintKey::generate());
        let of = |project: &str, created: bool, exists: bool, key: &FingerprintKey| {
            let mark = Mark::new(project, 16384, "authenticator", created, key);
            let facts = RoleFacts {
                comment: mark::join("", &mark),
                marked_database_exists: exists,
                ..RoleFacts::default()
            };
            BTreeMap::from([("authenticator".to_owned(), facts)])
        };
        let internal_database = |oid: u32| {
            let found = Internal {
                oid,
                owner: "boss".to_owned(),
                superuser: true,
                ours: true,
                comment: String::new(),
            };
            BTreeMap::from([("_supabase".to_owned(), found)])
        };
        let ours = internal_database(created_objects::database_oid("default/shop", 16384, "_supabase"));
        let found = |roles: &BTreeMap<String, RoleFacts>, internal: &BTreeMap<String, Internal>| {
            let found = orphans(roles, internal, "default/shop", &key);
            (found.logins.len(), found.databases.len())
        };
        let gone = of("default/shop", true, false, &key);
        assert_eq!(found(&gone, &ours), (1, 1));
        assert_eq!(found(&gone, &internal_database(5)), (1, 0));
        for kept in [
            of("default/shop", true, true, &key),
            of("default/shop", false, false, &key),
            of("default/other", true, false, &key),
            of("default/shop", true, false, &other_key),
        ] {
            assert_eq!(found(&kept, &ours), (0, 0));
        }
    }
}
