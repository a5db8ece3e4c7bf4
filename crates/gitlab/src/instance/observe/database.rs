//! Queries the database for its version and its unfinished background migrations.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use secrecy::SecretString;
use stanchion_kernel::problem::chain;
use stanchion_postgres::{ConnectionConfig, Error, Pools, Query};

use crate::login::Psql;

/// Timeout of the queries.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// The database's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The server's major version.
    pub version: u32,
    /// The number of unfinished background migrations.
    pub unfinished: i64,
}

/// Queries the database with GitLab's login. The error says why there is no answer.
pub async fn ask(pools: &Pools, psql: &Psql, secret: &Secret) -> Result<Answer, String> {
    let address = psql.behind_pooler.as_ref().unwrap_or(&psql.address);
    let password = secret.data.as_ref().and_then(|data| data.get(&psql.password.key));
    let password = password.and_then(|value| String::from_utf8(value.0.clone()).ok());
    let target = ConnectionConfig::new(&address.host, address.port, &psql.database, &psql.username);
    let target = target.map_err(|error| error.to_string())?;
    let target = target
        .with_password(SecretString::from(password.unwrap_or_default()))
        .named_in(secret.metadata.namespace.as_deref().unwrap_or_default());
    match tokio::time::timeout(QUERY_TIMEOUT, question(pools, &target)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(format!(
            "PostgreSQL at {target} does not answer within {} seconds",
            QUERY_TIMEOUT.as_secs()
        )),
    }
}

/// The states 3 (finished) and 6 (finalized) count as finished. A database without the table has no migrations.
async fn question(pools: &Pools, target: &ConnectionConfig) -> Result<Answer, Error> {
    const IS_THERE: &str = "SELECT to_regclass('public.batched_background_migrations') IS NOT NULL";
    const UNFINISHED: &str =
        "SELECT count(*) FROM public.batched_background_migrations WHERE status NOT IN (3, 6)";
    let session = pools.get(target).await?;
    let is_there = session.query(&Query::new(IS_THERE)).await?;
    let is_there = is_there
        .first()
        .is_some_and(|row| row.try_get(0).unwrap_or_default());
    let mut unfinished = 0;
    if is_there {
        let rows = session.query(&Query::new(UNFINISHED)).await?;
        // An unreadable answer does not permit the upgrade.
        unfinished = rows
            .first()
            .and_then(|row| row.try_get(0).ok())
            .unwrap_or(i64::MAX);
    }
    Ok(Answer {
        version: session.version() / 10_000,
        unfinished,
    })
}
