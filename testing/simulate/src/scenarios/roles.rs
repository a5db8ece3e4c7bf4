//! What is on a server: roles, databases, and privileges in them, without what differs between any two runs.

use serde_json::{Map, Value, json};

use crate::server::{OPERATOR, STEWARD, Server};

/// The roles that the operator, its users or the scenario have made.
const MADE: &str = "rolname !~ '^pg_' AND rolname NOT IN ('postgres', 'OPERATOR', 'STEWARD')";
const DATABASES: &str = "datname NOT IN ('postgres', 'template0', 'template1')";
/// The role that keeps what others have owned has a number in its name.
const KEEPER: &str = "'stanchion_kept_[0-9a-z_]+', 'keeper', 'g'";

/// The names of roles and databases.
pub(super) fn names(server: &Server) -> Vec<String> {
    let made = made();
    server.column(
        "postgres",
        &format!("SELECT rolname FROM pg_roles WHERE {made} UNION SELECT datname FROM pg_database WHERE {DATABASES} ORDER BY 1"),
    )
}

/// The roles that can log in.
pub(super) fn logins(server: &Server) -> Vec<String> {
    let made = made();
    server.column(
        "postgres",
        &format!("SELECT rolname FROM pg_roles WHERE {made} AND rolcanlogin ORDER BY 1"),
    )
}

/// Everything.
pub(super) fn snapshot(server: &Server) -> Value {
    let made = made();
    let lines = |database: &str, sql: &str| server.column(database, sql);
    let roles = lines(
        "postgres",
        &format!(
            "SELECT regexp_replace(concat_ws(' ', rolname, rolcanlogin, rolsuper, rolinherit, rolcreaterole, rolcreatedb, \
             rolreplication, rolbypassrls, rolconnlimit, rolvaliduntil, (SELECT string_agg(s.setconfig::text, ',' ORDER BY s.setdatabase) FROM pg_db_role_setting s \
             WHERE s.setrole = a.oid), rolpassword IS NOT NULL), {KEEPER}) \
             FROM pg_authid a WHERE {made} ORDER BY 1"
        ),
    );
    let members = lines(
        "postgres",
        &format!(
            "SELECT regexp_replace(concat_ws(' ', roleid::regrole, member::regrole, admin_option), {KEEPER}) \
             FROM pg_auth_members WHERE roleid::regrole::text !~ '^pg_' ORDER BY 1"
        ),
    );
    let databases = lines(
        "postgres",
        &format!(
            "SELECT regexp_replace(concat_ws(' ', datname, datdba::regrole, datconnlimit, \
             (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(coalesce(datacl, acldefault('d', datdba))) a)), {KEEPER}) \
             FROM pg_database WHERE {DATABASES} ORDER BY 1"
        ),
    );
    let mut inside = Map::new();
    for database in lines(
        "postgres",
        &format!("SELECT datname FROM pg_database WHERE {DATABASES} ORDER BY 1"),
    ) {
        let acl = |column: &str| {
            format!("(SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest({column}) a)")
        };
        let sql = format!(
            "SELECT regexp_replace(t, {KEEPER}) FROM ( \
             SELECT concat_ws(' ', 'schema', nspname, nspowner::regrole, {}) t FROM pg_namespace WHERE nspname !~ '^pg_' \
             UNION ALL SELECT concat_ws(' ', 'default', defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, {}) \
             FROM pg_default_acl \
             UNION ALL SELECT concat_ws(' ', relkind, relname, relowner::regrole, {}) FROM pg_class \
             WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema') \
             UNION ALL SELECT concat_ws(' ', 'extension', extname) FROM pg_extension) s ORDER BY 1",
            acl("coalesce(nspacl, acldefault('n', nspowner))"),
            acl("defaclacl"),
            acl("coalesce(relacl, acldefault('r', relowner))")
        );
        let found = lines(&database, &sql);
        inside.insert(database, json!(found));
    }
    json!({ "roles": roles, "members": members, "databases": databases, "inside": inside })
}

/// Those lines of a snapshot that are about one role.
pub(super) fn of_one(server: &Server, role: &str) -> Value {
    let mut snapshot = snapshot(server);
    let about = |lines: &mut Value| {
        if let Some(lines) = lines.as_array_mut() {
            lines.retain(|line| line.as_str().is_some_and(|line| line.contains(role)));
            for line in lines {
                // Without the privileges of others on the same object.
                let words = line.as_str().unwrap_or_default().split([' ', ',']);
                let own: Vec<&str> = words
                    .filter(|word| !word.contains('=') || word.contains(role))
                    .collect();
                *line = json!(own.join(" "));
            }
        }
    };
    for part in ["roles", "members", "databases"] {
        about(&mut snapshot[part]);
    }
    for lines in snapshot["inside"]
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        about(lines);
    }
    if let Some(inside) = snapshot["inside"].as_object_mut() {
        inside.retain(|_, lines| lines != &json!([]));
    }
    snapshot
}

fn made() -> String {
    MADE.replace("OPERATOR", OPERATOR.0).replace("STEWARD", STEWARD.0)
}
