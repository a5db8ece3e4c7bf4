//! Records what the operator created, beside the steps, so that a deletion removes exactly that. What existed before is
//! not recorded, even under the same name.

use sha2::{Digest as _, Sha256};
use stanchion_postgres::Statement;

use super::roles::{Names, TABLE};
use super::steps::{REQUIRED_EXTENSIONS, optional_extensions};

/// All existing objects of the kinds that the steps create.
macro_rules! current {
    () => {
        "(SELECT 'schema' AS kind, nspname::pg_catalog.text AS name FROM pg_catalog.pg_namespace \
          UNION ALL SELECT 'extension', extname::pg_catalog.text FROM pg_catalog.pg_extension \
          UNION ALL SELECT 'publication', pubname::pg_catalog.text FROM pg_catalog.pg_publication \
          UNION ALL SELECT 'event trigger', evtname::pg_catalog.text FROM pg_catalog.pg_event_trigger \
          UNION ALL SELECT 'setting', pg_catalog.split_part(c.entry, '=', 1) \
            FROM pg_catalog.pg_db_role_setting s CROSS JOIN pg_catalog.unnest(s.setconfig) AS c (entry) \
            WHERE s.setdatabase = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()) \
              AND s.setrole = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) \
          UNION ALL SELECT 'role', rolname::pg_catalog.text FROM pg_catalog.pg_roles)"
    };
}

/// The names that the steps create, besides roles and extensions.
const NAMES: &[&str] = &[
    "extensions",
    "graphql_public",
    "auth",
    "storage",
    "realtime",
    "_realtime",
    "supabase_functions",
    "pgbouncer",
    "supabase_realtime",
    // A setting of the administrator, in this database.
    "search_path",
    "pgrst_ddl_watch",
    "pgrst_drop_watch",
    "issue_pg_cron_access",
    "issue_pg_net_access",
    "issue_pg_graphql_access",
];

/// Lists the existing objects before anything is created.
pub(super) fn before() -> [Statement; 2] {
    [
        Statement::new(
            "CREATE TABLE IF NOT EXISTS _stanchion.made (kind text, name text, PRIMARY KEY (kind, name))",
        ),
        Statement::new(concat!(
            "SELECT pg_catalog.set_config('stanchion.before', (SELECT pg_catalog.string_agg(p.kind || ' ' || p.name, ',') FROM ",
            current!(),
            " p), true)"
        )),
    ]
}

/// Every name that can be recorded.
fn known(names: &Names) -> impl Iterator<Item = String> {
    let roles = TABLE.iter().map(|role| names.role(role));
    let extensions = REQUIRED_EXTENSIONS
        .iter()
        .copied()
        .chain(optional_extensions().map(|(name, _)| name));
    NAMES
        .iter()
        .copied()
        .chain(extensions)
        .map(str::to_owned)
        .chain(roles)
}

/// Removes from the record what the operator cannot have created: somebody who could write there would have it dropped.
/// The internal database has its own proof. These logins belong to others.
pub(super) fn forget_others(names: &Names, logins: &[String]) -> Statement {
    let known = known(names).filter(|name| !logins.contains(name));
    Statement::new("DELETE FROM _stanchion.made WHERE kind NOT IN ('connect', 'database') AND name NOT IN (")
        .list(", ", known, |statement, name| statement.literal(&name))
        .sql(")")
}

/// Records what has been created since.
pub(super) fn after(names: &Names) -> Statement {
    Statement::new(concat!(
        "INSERT INTO _stanchion.made (kind, name) SELECT p.kind, p.name FROM ",
        current!(),
        " p WHERE p.kind || ' ' || p.name <> ALL (pg_catalog.string_to_array(pg_catalog.current_setting('stanchion.before'), \
         ',')) AND p.name IN ("
    ))
    .list(", ", known(names), |statement, name| statement.literal(&name))
    .sql(") ON CONFLICT DO NOTHING")
}

/// The oid that the internal database is created with: it proves that the database is ours, even if the process was
/// killed before anything was recorded (ADR 0009). It is in the upper half of the range, which the server's own counter
/// does not reach.
pub(super) fn database_oid(project: &str, database_oid: u32, name: &str) -> u32 {
    let digest = Sha256::digest(format!("{project}\0{database_oid}\0{name}"));
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    u32::from_be_bytes(bytes) | (1 << 31)
}

/// Records that the operator created the internal database.
pub(super) fn database(name: &str) -> Statement {
    made("database", name)
}

/// Records that the operator created a login for an earlier database of the project.
pub(super) fn login(name: &str) -> Statement {
    made("role", name)
}

fn made(kind: &str, name: &str) -> Statement {
    Statement::new("INSERT INTO _stanchion.made (kind, name) VALUES (")
        .literal(kind)
        .sql(", ")
        .literal(name)
        .sql(") ON CONFLICT DO NOTHING")
}
