//! The database.

use serde_json::{Value, json};

use super::Input;
use super::merge::layered;
use crate::login::{Address, Psql};

pub(super) fn values(input: &Input<'_>) -> Value {
    let bundled = input
        .chart
        .bundles_backends()
        .then(|| json!({ "postgresql": { "install": false } }));
    let direct = input
        .psql
        .and_then(|psql| psql.behind_pooler.as_ref())
        .map(direct);
    layered([bundled, input.psql.map(login), direct])
}

/// No prepared statements: behind a pooler the next statement may run in another session, which does not have them.
fn login(psql: &Psql) -> Value {
    let Psql {
        address, password, ..
    } = psql;
    json!({ "global": { "psql": {
        "host": address.host,
        "port": address.port,
        "database": psql.database,
        "username": psql.username,
        "preparedStatements": false,
        "password": { "secret": password.secret, "key": password.key },
    } } })
}

/// Migrations and backups need their own session as long as they run, and settings that a pooler loses.
fn direct(server: &Address) -> Value {
    let psql = json!({ "psql": { "host": server.host, "port": server.port } });
    json!({ "gitlab": { "migrations": psql, "toolbox": psql } })
}
