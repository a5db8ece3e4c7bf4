//! A database as text, object by object, the same text on every version of PostgreSQL.

use stanchion_postgres::handover::PREFIX;

use crate::database_env::DatabaseEnv;

/// Each part: a heading, and a query whose first column is one line for each object.
const PARTS: &[(&str, &str)] = &[
    (
        "roles",
        "SELECT concat_ws(' ', r.rolname, CASE WHEN r.rolcanlogin THEN 'LOGIN' ELSE 'NOLOGIN' END, \
                CASE WHEN r.rolinherit THEN 'INHERIT' ELSE 'NOINHERIT' END, \
                CASE WHEN r.rolsuper THEN 'SUPERUSER' END, CASE WHEN r.rolcreatedb THEN 'CREATEDB' END, \
                CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END, CASE WHEN r.rolreplication THEN 'REPLICATION' END, \
                CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END) \
         FROM pg_roles r WHERE r.rolname NOT LIKE 'pg\\_%' ORDER BY r.rolname",
    ),
    (
        "memberships",
        "SELECT g.rolname || ' to ' || u.rolname || CASE WHEN bool_or(m.admin_option) THEN ' with admin option' ELSE '' END \
         FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles u ON u.oid = m.member \
         WHERE u.rolname <> 'pg_monitor' GROUP BY g.rolname, u.rolname ORDER BY u.rolname, g.rolname",
    ),
    (
        "settings",
        "SELECT r.rolname || CASE WHEN s.setdatabase = 0 THEN '' ELSE ' in this database' END || ': ' || c.entry \
         FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole CROSS JOIN unnest(s.setconfig) AS c (entry) \
         ORDER BY 1",
    ),
    (
        "extensions",
        "SELECT e.extname || ' in ' || n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace ORDER BY 1",
    ),
    (
        "schemas",
        "SELECT n.nspname || ' of ' || pg_get_userbyid(n.nspowner) || ': ' || coalesce(array_to_string(n.nspacl, ' '), '') \
         FROM pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1",
    ),
    (
        "relations",
        "SELECT c.oid::regclass || ' of ' || pg_get_userbyid(c.relowner) || ': ' || coalesce(array_to_string(c.relacl, ' '), '') \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind <> 'i' \
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') ORDER BY 1",
    ),
    (
        "routines",
        "SELECT p.oid::regprocedure || ' of ' || pg_get_userbyid(p.proowner) || CASE WHEN p.prosecdef THEN ' as its owner' ELSE '' END \
                || ': ' || coalesce(array_to_string(p.proacl, ' '), '') \
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1",
    ),
    (
        "default privileges",
        "SELECT pg_get_userbyid(d.defaclrole) || ' in ' || n.nspname || ' on ' || d.defaclobjtype::text || ': ' \
                || array_to_string(d.defaclacl, ' ') \
         FROM pg_default_acl d JOIN pg_namespace n ON n.oid = d.defaclnamespace ORDER BY 1",
    ),
    (
        "publications",
        "SELECT p.pubname || ' of ' || pg_get_userbyid(p.pubowner) FROM pg_publication p ORDER BY 1",
    ),
    (
        "event triggers",
        "SELECT t.evtname || ' on ' || t.evtevent || ' ' || coalesce(t.evttags::text, '') || ' ' || t.evtfoid::regproc \
         FROM pg_event_trigger t ORDER BY 1",
    ),
    (
        "databases",
        "SELECT d.datname || ' of ' || pg_get_userbyid(d.datdba) || ': ' || coalesce(array_to_string(d.datacl, ' '), '') \
         FROM pg_database d WHERE NOT d.datistemplate ORDER BY 1",
    ),
    (
        "parameters",
        "SELECT p.parname || ': ' || array_to_string(p.paracl, ' ') FROM pg_parameter_acl p ORDER BY 1",
    ),
    (
        "steps",
        "SELECT s.number || ' ' || s.name || coalesce(' skipped: ' || s.skipped, '') FROM _stanchion.steps s ORDER BY s.number",
    ),
];

/// All parts.
pub(crate) async fn of(db_env: &DatabaseEnv) -> String {
    parts(db_env, |_| true).await
}

/// Everything but the record, for a database without one.
pub(crate) async fn without_record(db_env: &DatabaseEnv) -> String {
    parts(db_env, |heading| heading != "steps").await
}

async fn parts(db_env: &DatabaseEnv, wanted: impl Fn(&str) -> bool) -> String {
    // Names with their schemas, independent of the search path; all in one query.
    let wanted = PARTS.iter().filter(|(heading, _)| wanted(heading));
    let queries = wanted.map(|(heading, query)| format!("SELECT '# {heading}'; {query}"));
    let sql: Vec<_> = std::iter::once("SET search_path = ''".to_owned())
        .chain(queries)
        .collect();
    let lines: Vec<_> = db_env
        .column(&sql.join("; "))
        .await
        .iter()
        .map(|line| sorted(&without_numbers(line)))
        .collect();
    lines.join("\n")
}

/// The name of a keeper ends in the oid of its database and a digest of its namespace, which differ from run to run.
fn without_numbers(line: &str) -> String {
    let mut parts = line.split(PREFIX);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| {
        let rest =
            part.trim_start_matches(|character: char| character.is_ascii_hexdigit() || character == '_');
        line + PREFIX + rest
    })
}

/// Privileges in the order of their holders, and without MAINTAIN, which is new in 17.
fn sorted(line: &str) -> String {
    let Some((head, privileges)) = line
        .split_once(": ")
        .filter(|(_, rest)| rest.contains('=') && rest.contains('/'))
    else {
        return line.to_owned();
    };
    let mut privileges: Vec<_> = privileges
        .split(' ')
        .map(|entry| match entry.rsplit_once('/') {
            Some((entry, grantor)) => match entry.split_once('=') {
                Some((holder, words)) => format!("{holder}={}/{grantor}", words.replace('m', "")),
                None => entry.to_owned(),
            },
            None => entry.to_owned(),
        })
        .collect();
    privileges.sort();
    format!("{head}: {}", privileges.join(" "))
}
