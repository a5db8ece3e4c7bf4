//! What we may do with single roles.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use crate::read::Query;

/// What we may do with one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct Powers {
    /// It is a superuser: only superusers may touch it.
    pub is_superuser: bool,
    /// We hold it with ADMIN OPTION.
    pub admin: bool,
    /// Its privileges count as ours.
    pub inherit: bool,
    /// We can SET ROLE to it.
    pub set: bool,
}

impl Powers {
    // Before 16 there is no privilege type SET: who is a member can SET ROLE.
    const QUERY: &'static str = "\
        SELECT rolname::pg_catalog.text, rolsuper, \
               pg_catalog.pg_has_role(oid, 'MEMBER WITH ADMIN OPTION'), pg_catalog.pg_has_role(oid, 'USAGE'), \
               pg_catalog.pg_has_role(oid, CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 \
                                                     >= 160000 THEN 'SET' ELSE 'MEMBER' END) \
        FROM pg_catalog.pg_roles WHERE rolname = ANY ($1)";

    /// The question about some roles, for a pipeline. Give all rows of the answer to [`Powers::of_rows`].
    pub fn query(roles: Vec<String>) -> Query {
        Query::new(Self::QUERY).texts(roles)
    }

    /// The answer to [`Powers::query`]: a role that does not exist is not in it.
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
