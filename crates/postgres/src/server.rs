//! Properties of the server, and our privileges on it.
//!
//! "Superuser or not" is not enough. Managed services have an administrator role of their own instead. Up to version
//! 15, CREATEROLE gives power over every role that is not a superuser; from 16 on it gives power only over roles that
//! one has with ADMIN OPTION, which the creator of a role gets, without the privilege to act as it.
//!
//! Both queries are plain [`Query`]s, so a caller can run them in the same round trip as its own.

mod powers;

use std::collections::BTreeMap;

pub use powers::Powers;
use tokio_postgres::Row;

use crate::error::{Error, Kind};
use crate::read::Query;
use crate::session::ReadSession;
use crate::sqlstate::Doing;

/// The administrator roles of managed services, instead of a superuser.
const CLOUD_ADMINS: &[&str] = &[
    "rds_superuser",     // Amazon RDS, Aurora
    "cloudsqlsuperuser", // Google Cloud SQL
    "alloydbsuperuser",  // Google AlloyDB
    "azure_pg_admin",    // Azure Database
    "neon_superuser",    // Neon
];

/// The version from which CREATEROLE requires ADMIN OPTION, and memberships have INHERIT and SET.
pub const BOUND_CREATEROLE: u32 = 160_000;

/// The server, and our role on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// 150004 is 15.4.
    pub version: u32,
    /// Whether it is a replica, which is read-only.
    pub in_recovery: bool,
    /// The current role; after SET ROLE not the login role.
    pub role: String,
    /// The role that logged in.
    pub login: String,
    /// Its attributes.
    pub attributes: Attributes,
    /// The managed service's administrator roles that we are a direct or indirect member of.
    pub cloud_admin_of: Vec<String>,
    /// Whether and how roles that we create are granted to us automatically (16 and later).
    pub self_grant: SelfGrant,
    /// Whether we can keep our statements out of the server's log. If not, the log may contain statements with password
    /// verifiers (never with passwords), if the server logs statements or their errors; [`LOG_GRANTS`] fixes it.
    pub keeps_log_clean: bool,
}

/// The privileges that an administrator without superuser needs to keep verifiers out of the server's log (15 and
/// later).
pub const LOG_GRANTS: &str = "GRANT SET ON PARAMETER log_statement, log_min_messages, log_min_error_statement, \
                              log_min_duration_statement, log_min_duration_sample, log_transaction_sample_rate TO";

/// The attributes of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the server's columns")]
pub struct Attributes {
    /// SUPERUSER.
    pub superuser: bool,
    /// CREATEROLE.
    pub create_role: bool,
    /// CREATEDB.
    pub create_db: bool,
    /// BYPASSRLS.
    pub bypass_rls: bool,
    /// REPLICATION.
    pub replication: bool,
}

/// `createrole_self_grant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelfGrant {
    /// We inherit from roles that we create.
    pub inherit: bool,
    /// We can SET ROLE to roles that we create.
    pub set: bool,
}

/// Our general privilege level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// Everything.
    Superuser,
    /// The privileges of the managed service's administrator.
    CloudAdmin(String),
    /// We can create roles.
    CreateRole,
    /// We cannot create roles.
    Plain,
}

impl Server {
    const QUERY: &'static str = "\
        SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4, \
               pg_catalog.pg_is_in_recovery(), current_user::pg_catalog.text, session_user::pg_catalog.text, \
               r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolbypassrls, r.rolreplication, \
               ARRAY(SELECT c.rolname::pg_catalog.text FROM pg_catalog.pg_roles c \
                     WHERE c.rolname = ANY ($1) AND pg_catalog.pg_has_role(r.oid, c.oid, 'MEMBER') \
                     ORDER BY pg_catalog.array_position($1, c.rolname::pg_catalog.text)), \
               pg_catalog.current_setting('createrole_self_grant', true), \
               (SELECT pg_catalog.bool_and(pg_catalog.has_parameter_privilege(p.name, 'SET')) FROM (VALUES \
                   ('log_statement'), ('log_min_messages'), ('log_min_error_statement'), \
                   ('log_min_duration_statement'), ('log_min_duration_sample'), ('log_transaction_sample_rate')) \
                   AS p (name)) \
        FROM pg_catalog.pg_roles r WHERE r.rolname = current_user";

    /// The query, for a pipeline. Pass the only row of the result to [`Server::of_row`].
    pub fn query() -> Query {
        Query::new(Self::QUERY).texts(CLOUD_ADMINS.iter().map(ToString::to_string).collect())
    }

    /// The result of [`Server::query`].
    pub fn of_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let self_grant: Option<String> = row.try_get(10)?;
        let version: i32 = row.try_get(0)?;
        Ok(Self {
            version: version.unsigned_abs(),
            in_recovery: row.try_get(1)?,
            role: row.try_get(2)?,
            login: row.try_get(3)?,
            attributes: Attributes {
                superuser: row.try_get(4)?,
                create_role: row.try_get(5)?,
                create_db: row.try_get(6)?,
                bypass_rls: row.try_get(7)?,
                replication: row.try_get(8)?,
            },
            cloud_admin_of: row.try_get(9)?,
            self_grant: SelfGrant::parse(&self_grant.unwrap_or_default()),
            keeps_log_clean: row.try_get(11)?,
        })
    }

    /// Our general privilege level.
    pub fn level(&self) -> Level {
        match (self.attributes, self.cloud_admin_of.first()) {
            (Attributes { superuser: true, .. }, _) => Level::Superuser,
            (_, Some(admin)) => Level::CloudAdmin(admin.clone()),
            (
                Attributes {
                    create_role: true, ..
                },
                None,
            ) => Level::CreateRole,
            _ => Level::Plain,
        }
    }

    /// Whether we may ALTER, GRANT and DROP this role.
    pub fn may_manage(&self, powers: Powers) -> bool {
        let Attributes {
            superuser,
            create_role,
            ..
        } = self.attributes;
        superuser
            || (create_role && !powers.is_superuser && (self.version < BOUND_CREATEROLE || powers.admin))
    }

    /// Whether we may act for this role on what it owns (REASSIGN OWNED, DROP OWNED). If not, but [`Self::may_manage`]
    /// holds, `GRANT role TO current_user` fixes it.
    pub fn may_act_as(&self, powers: Powers) -> bool {
        self.attributes.superuser || powers.inherit
    }
}

impl SelfGrant {
    /// Reads the value of the setting.
    pub fn parse(text: &str) -> Self {
        let has = |word: &str| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
        Self {
            inherit: has("inherit"),
            set: has("set"),
        }
    }
}

impl ReadSession {
    /// The properties of the server, and our privileges on it and on these roles, in one round trip.
    pub async fn inspect(&self, roles: &[&str]) -> Result<(Server, BTreeMap<String, Powers>), Error> {
        let roles = roles.iter().map(ToString::to_string).collect();
        let answers = self.snapshot(&[Server::query(), Powers::query(roles)]).await?;
        let [server, powers] = answers.as_slice() else {
            return Err(self.no_answer());
        };
        let server = server.first().ok_or_else(|| self.no_answer())?;
        let not_understood = |error| self.error(Doing::Reading, &error);
        Ok((
            Server::of_row(server).map_err(not_understood)?,
            Powers::of_rows(powers).map_err(not_understood)?,
        ))
    }

    /// Our own role is not in the catalog: it was dropped in the meantime.
    fn no_answer(&self) -> Error {
        Error::new(
            Kind::Protocol,
            Doing::Reading,
            self.target(),
            "the session's own role does not exist any more",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: u32, attributes: Attributes) -> Server {
        Server {
            version,
            in_recovery: false,
            role: "admin".into(),
            login: "admin".into(),
            attributes,
            cloud_admin_of: vec![],
            self_grant: SelfGrant::default(),
            keeps_log_clean: true,
        }
    }

    #[test]
    fn createrole_lost_its_power_in_16() {
        let create_role = Attributes {
            create_role: true,
            ..Attributes::default()
        };
        let (held, not_held) = (
            Powers {
                admin: true,
                ..Powers::default()
            },
            Powers::default(),
        );
        assert!(server(150_000, create_role).may_manage(not_held));
        assert!(!server(160_000, create_role).may_manage(not_held));
        assert!(server(160_000, create_role).may_manage(held));
        let superuser = Powers {
            is_superuser: true,
            admin: true,
            ..Powers::default()
        };
        assert!(!server(150_000, create_role).may_manage(superuser));
        assert!(
            server(
                160_000,
                Attributes {
                    superuser: true,
                    ..Attributes::default()
                }
            )
            .may_manage(superuser)
        );
        assert!(!server(150_000, Attributes::default()).may_manage(held));
    }

    #[test]
    fn self_grants() {
        assert_eq!(SelfGrant::parse(""), SelfGrant::default());
        assert_eq!(
            SelfGrant::parse("set, inherit"),
            SelfGrant {
                inherit: true,
                set: true
            }
        );
        assert_eq!(
            SelfGrant::parse("inherit"),
            SelfGrant {
                inherit: true,
                set: false
            }
        );
    }

    #[test]
    fn the_cloud_comes_after_the_superuser() {
        let mut server = server(
            150_000,
            Attributes {
                create_role: true,
                ..Attributes::default()
            },
        );
        assert_eq!(server.level(), Level::CreateRole);
        server.cloud_admin_of = vec!["rds_superuser".into()];
        assert_eq!(server.level(), Level::CloudAdmin("rds_superuser".into()));
        server.attributes.superuser = true;
        assert_eq!(server.level(), Level::Superuser);
        assert_eq!(self::server(150_000, Attributes::default()).level(), Level::Plain);
    }
}
