//! What the catalog says about memberships.

use stanchion_postgres::{Query, Row};

use super::Unexpected;

/// Properties of a membership.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipFacts {
    pub admin: bool,
    /// INHERIT OPTION; before PostgreSQL 16 an attribute of the member.
    pub inherit: Option<bool>,
    /// SET OPTION; before PostgreSQL 16 always true.
    pub set: Option<bool>,
    /// The grants. From PostgreSQL 16 on, that of each grantor has to be revoked separately.
    pub grants: Vec<MembershipGrant>,
}

/// One grantor's grant of a membership.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct MembershipGrant {
    pub grantor: String,
    pub admin: bool,
    pub inherit: bool,
    pub set: bool,
    /// Whether the administrator has the privileges of the grantor, and so may revoke it.
    pub revocable: bool,
}

/// Several grantors may have granted one membership; its strongest options apply. `to_jsonb` because the columns of the
/// options are new in PostgreSQL 16.
const MEMBERSHIPS: &str = "\
SELECT pg_catalog.pg_get_userbyid(m.roleid)::pg_catalog.text, pg_catalog.bool_or(m.admin_option), \
       pg_catalog.bool_or((pg_catalog.to_jsonb(m) ->> 'inherit_option')::pg_catalog.bool), \
       pg_catalog.bool_or((pg_catalog.to_jsonb(m) ->> 'set_option')::pg_catalog.bool), \
       pg_catalog.array_agg(pg_catalog.pg_get_userbyid(m.grantor)::pg_catalog.text ORDER BY m.grantor), \
       pg_catalog.array_agg(m.admin_option ORDER BY m.grantor), \
       pg_catalog.array_agg(coalesce((pg_catalog.to_jsonb(m) ->> 'inherit_option')::pg_catalog.bool, false) ORDER BY m.grantor), \
       pg_catalog.array_agg(coalesce((pg_catalog.to_jsonb(m) ->> 'set_option')::pg_catalog.bool, false) ORDER BY m.grantor), \
       pg_catalog.array_agg(coalesce(pg_catalog.pg_has_role(m.grantor, 'USAGE'), true) ORDER BY m.grantor) \
FROM pg_catalog.pg_auth_members m \
WHERE m.member = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $1) GROUP BY m.roleid";

/// The query for the memberships of a role.
pub(super) fn query(role: &str) -> Query {
    Query::new(MEMBERSHIPS).text(role)
}

/// Decodes one membership.
pub(super) fn membership(row: &Row) -> Result<(String, MembershipFacts), Unexpected> {
    let grantors: Vec<String> = row.try_get(4)?;
    let [admin, inherit, set, revocable]: [Vec<bool>; 4] =
        [row.try_get(5)?, row.try_get(6)?, row.try_get(7)?, row.try_get(8)?];
    let options = admin.into_iter().zip(inherit).zip(set.into_iter().zip(revocable));
    let grants = grantors
        .into_iter()
        .zip(options)
        .map(
            |(grantor, ((admin, inherit), (set, revocable)))| MembershipGrant {
                grantor,
                admin,
                inherit,
                set,
                revocable,
            },
        );
    let facts = MembershipFacts {
        admin: row.try_get(1)?,
        inherit: row.try_get(2)?,
        set: row.try_get(3)?,
        grants: grants.collect(),
    };
    Ok((row.try_get(0)?, facts))
}
