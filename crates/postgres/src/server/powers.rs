//! Our privileges on single roles.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use crate::read::Query;

/// Our privileges on one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct Powers {
    /// It is a superuser: only superusers may change it.
    pub is_superuser: bool,
    /// We have it with ADMIN OPTION.
    pub admin: bool,
    /// We inherit its privileges.
    pub inherit: bool,
    /// We can SET ROLE to it.
    pub set: bool,
}

impl Powers {
    // The server checks membership by walking through all roles that we belong to, which may be thousands, and for
    // ADMIN OPTION it does so again each time. So this query looks memberships up, and asks the server only about
    // indirect ones. Before 16, memberships have no options (a member inherits if it has INHERIT, and can SET ROLE),
    // and there is no privilege type SET.
    const QUERY: &'static str = "\
        SELECT r.rolname::pg_catalog.text, r.rolsuper, \
               me.rolsuper OR EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.roleid = r.oid AND m.admin_option \
                                      AND pg_catalog.pg_has_role(m.member, 'MEMBER')), \
               CASE WHEN held.inherits THEN true ELSE pg_catalog.pg_has_role(r.oid, 'USAGE') END, \
               CASE WHEN held.sets THEN true ELSE pg_catalog.pg_has_role(r.oid, \
                    CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000 \
                         THEN 'SET' ELSE 'MEMBER' END) END \
        FROM pg_catalog.pg_roles r \
        JOIN pg_catalog.pg_roles me ON me.rolname = current_user \
        LEFT JOIN LATERAL ( \
            SELECT pg_catalog.bool_or(coalesce((o.options ->> 'inherit_option')::pg_catalog.bool, me.rolinherit)) AS inherits, \
                   pg_catalog.bool_or(coalesce((o.options ->> 'set_option')::pg_catalog.bool, true)) AS sets \
            FROM pg_catalog.pg_auth_members m, pg_catalog.to_jsonb(m) AS o (options) \
            WHERE m.roleid = r.oid AND m.member = me.oid) held ON true \
        WHERE r.rolname = ANY ($1)";

    /// The query for some roles, for a pipeline. Pass all rows of the result to [`Powers::of_rows`].
    pub fn query(roles: Vec<String>) -> Query {
        Query::new(Self::QUERY).texts(roles)
    }

    /// The result of [`Powers::query`], without roles that do not exist.
    pub fn of_rows(rows: &[Row]) -> Result<BTreeMap<String, Self>, tokio_postgres::Error> {
        let powers = |row: &Row| {
            Ok((
                row.try_get(0)?,
                Self {
                    is_superuser: row.try_get(1)?,
                    admin: row.try_get(2)?,
                    inherit: row.try_get(3)?,
                    set: row.try_get(4)?,
                },
            ))
        };
        rows.iter().map(powers).collect()
    }
}
