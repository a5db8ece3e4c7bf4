//! Queries the database for its version and its unfinished background migrations, if the answer decides something.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use secrecy::SecretString;
use stanchion_kernel::problem::chain;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{ConnectionConfig, Error, Pools, Query};

use super::super::prerequisites::Prerequisites;
use super::super::target::Wanted;
use super::Current;
use crate::Setup;
use crate::login::Psql;

const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// What the database says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// Its answer decides nothing in this pass.
    NotAsked,
    Answered(Answer),
    /// Why there is no answer.
    NoAnswer(String),
}

/// The database's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The server's major version.
    pub version: u32,
    /// The number of unfinished background migrations.
    pub unfinished: i64,
}

/// Queries the database if the answer decides something: before the first use of a provided one, and before an upgrade
/// continues.
pub(super) async fn ask(
    setup: &Setup,
    read: &Reader,
    wanted: &Wanted,
    current: &Current,
    prerequisites: &Prerequisites,
) -> Result<Database, Problem> {
    let (Ok(upgrade), Ok(psql)) = (&prerequisites.upgrade, &prerequisites.postgres) else {
        return Ok(Database::NotAsked);
    };
    let is_first = current.flux.release.is_none() && wanted.spec.postgres.credentials_secret.is_some();
    let is_next = upgrade.held.as_ref().is_some_and(|held| held.asks_database);
    if !is_first && !is_next {
        return Ok(Database::NotAsked);
    }
    let Some(psql) = psql else {
        return Ok(Database::NoAnswer(
            "only helm.values say where the database is".into(),
        ));
    };
    let secret = match current.secrets.get(&psql.password.secret) {
        // A shape has no password.
        Some(_) if current.storage_resolved => read.get::<Secret>(&psql.password.secret).await?,
        secret => secret.cloned(),
    };
    Ok(match secret {
        Some(secret) => match query(&setup.pools, psql, &secret, is_next).await {
            Ok(answer) => Database::Answered(answer),
            Err(why) => Database::NoAnswer(why),
        },
        None => Database::NotAsked,
    })
}

/// Queries the database with GitLab's login. The error says why there is no answer.
///
/// A database on which GitLab runs has the table of background migrations. Without it, this is another database, and its
/// answer does not permit an upgrade.
async fn query(pools: &Pools, psql: &Psql, secret: &Secret, is_used: bool) -> Result<Answer, String> {
    let address = psql.behind_pooler.as_ref().unwrap_or(&psql.address);
    let password = secret.data.as_ref().and_then(|data| data.get(&psql.password.key));
    let password = password.and_then(|value| String::from_utf8(value.0.clone()).ok());
    let target = ConnectionConfig::new(&address.host, address.port, &psql.database, &psql.username);
    let target = target.map_err(|error| error.to_string())?;
    let target = target
        .with_password(SecretString::from(password.unwrap_or_default()))
        .named_in(secret.metadata.namespace.as_deref().unwrap_or_default());
    match tokio::time::timeout(QUERY_TIMEOUT, answer(pools, &target)).await {
        Ok(Ok((_, None))) if is_used => Err(format!(
            "PostgreSQL at {target} has no table batched_background_migrations, so it is not a GitLab database; check host \
             and database in its Secret"
        )),
        Ok(Ok((version, unfinished))) => Ok(Answer {
            version,
            unfinished: unfinished.unwrap_or_default(),
        }),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(format!(
            "PostgreSQL at {target} does not answer within {} seconds",
            QUERY_TIMEOUT.as_secs()
        )),
    }
}

/// The server's major version, and the number of unfinished migrations; `None` without their table, which a database has
/// from the first installation on. The states 3 (finished) and 6 (finalized) count as finished.
async fn answer(pools: &Pools, target: &ConnectionConfig) -> Result<(u32, Option<i64>), Error> {
    const IS_THERE: &str = "SELECT to_regclass('public.batched_background_migrations') IS NOT NULL";
    const UNFINISHED: &str =
        "SELECT count(*) FROM public.batched_background_migrations WHERE status NOT IN (3, 6)";
    let session = pools.read_only(target).await?;
    let version = session.version() / 10_000;
    let is_there = session.query(&Query::new(IS_THERE)).await?;
    let is_there = is_there
        .first()
        .is_some_and(|row| row.try_get(0).unwrap_or_default());
    if !is_there {
        return Ok((version, None));
    }
    let rows = session.query(&Query::new(UNFINISHED)).await?;
    // An unreadable answer does not permit the upgrade.
    let unfinished = rows.first().and_then(|row| row.try_get(0).ok());
    Ok((version, Some(unfinished.unwrap_or(i64::MAX))))
}
