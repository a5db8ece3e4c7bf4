//! Hands over the objects of a role that is dropped, so that none of them runs with the privileges of a more powerful
//! role.
//!
//! A SECURITY DEFINER function runs as its owner, and so do views, rules, subscriptions and event triggers. If an
//! administrator became the owner, a tenant's function would run as the administrator. Two things prevent that:
//!
//! - Objects that run with their owner's privileges are **disarmed** in the same transaction, before they are
//!   reassigned ([`disarm`]): functions become SECURITY INVOKER and are no longer executable by PUBLIC, views become
//!   `security_invoker` and are no longer readable by PUBLIC, rules, event triggers and subscriptions are disabled, and
//!   a publication of whole schemas publishes nothing.
//! - By default everything goes to a **keeper**, a role that cannot log in, has no attributes and is a member of no
//!   other role ([`Keeper`]). There is one for each database and for each owner (a namespace), so the objects of one
//!   tenant are never mixed with those of another.
//!
//! ```text
//! transaction in each database:
//!   Keeper::make        where the keeper is not there yet
//!   disarm(leaving)
//!   keep(leaving, keeper)   or reassign(leaving, heir)
//!   disarm(keeper)      what a concurrent session made meanwhile
//!   DROP OWNED BY leaving
//! ```

use aws_lc_rs::digest::{SHA256, digest};
use tokio_postgres::Row;

use crate::read::Query;
use crate::server::{BOUND_CREATEROLE, Server};
use crate::sqlstate::Doing;
use crate::statement::Statement;

const DISARM: &str = include_str!("handover/disarm.sql");
const LISTING: &str = include_str!("handover/listing.sql");
/// The prefix of the names of keepers.
pub const PREFIX: &str = "stanchion_kept_";

const KEEPER: &str = "\
SELECT coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), ''), \
       NOT (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls) \
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid) \
FROM pg_catalog.pg_roles r WHERE r.rolname = $1";

/// The role that receives the objects of dropped roles in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    name: String,
}

/// A keeper as found on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperFacts {
    /// Its comment, whose mark the caller checks.
    pub comment: String,
    /// It cannot log in, has no attributes, and is a member of no other role.
    pub powerless: bool,
}

impl Keeper {
    /// The keeper of the database with this OID for this owner.
    pub fn of(database: u32, owner: &str) -> Self {
        let start = digest(&SHA256, owner.as_bytes())
            .as_ref()
            .iter()
            .take(4)
            .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        Self {
            name: format!("{PREFIX}{database}_{start:08x}"),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The query for the keeper. Pass the rows of the result to [`Self::facts`].
    pub fn query(&self) -> Query {
        Query::new(KEEPER).text(&self.name)
    }

    /// The result of [`Self::query`]; `None` if the keeper does not exist.
    pub fn facts(rows: &[Row]) -> Result<Option<KeeperFacts>, tokio_postgres::Error> {
        let facts = |row: &Row| {
            Ok(KeeperFacts {
                comment: row.try_get(0)?,
                powerless: row.try_get(1)?,
            })
        };
        rows.first().map(facts).transpose()
    }

    /// Creates the keeper with this comment.
    pub fn make(&self, comment: &str) -> Vec<Statement> {
        vec![
            Statement::new("CREATE ROLE ").ident(&self.name).sql(" NOLOGIN"),
            Statement::new("COMMENT ON ROLE ")
                .ident(&self.name)
                .sql(" IS ")
                .literal(comment),
        ]
    }
}

/// Disarms everything that the role owns in the current database and that runs with its owner's privileges. The current
/// role must be a superuser or a member of the role.
pub fn disarm(role: &str) -> Vec<Statement> {
    vec![
        Statement::new("SELECT pg_catalog.set_config('stanchion.handover', ")
            .literal(role)
            .sql(", true)"),
        Statement::new(DISARM).doing(Doing::Altering),
    ]
}

/// The query for what [`disarm`] would change: some of the objects, and their number.
pub fn armed(role: &str) -> Query {
    Query::new(LISTING).text(role)
}

/// The disarmed objects, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disarmed {
    /// Some of the objects, as the server describes them.
    pub some: Vec<String>,
    /// The number of objects.
    pub count: i64,
}

impl Disarmed {
    /// The result of [`armed`].
    pub fn of_rows(rows: &[Row]) -> Result<Self, tokio_postgres::Error> {
        let some = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let count = rows.first().map(|row| row.try_get(1)).transpose()?;
        Ok(Self {
            some,
            count: count.unwrap_or_default(),
        })
    }
}

/// Gives everything that the role owns in the current database, and shared objects, to another role. Without superuser,
/// the current role must be a member of both.
pub fn reassign(leaving: &str, heir: &str) -> Statement {
    Statement::new("REASSIGN OWNED BY ")
        .ident(leaving)
        .sql(" TO ")
        .ident(heir)
}

/// Gives everything to a keeper. Without superuser, a new owner needs CREATE wherever the old one had it: the keeper
/// gets it as a member of the old owner, until the end of the transaction.
pub fn keep(leaving: &str, keeper: &Keeper, server: &Server) -> Vec<Statement> {
    let reassign = reassign(leaving, keeper.name());
    if server.attributes.superuser {
        return vec![reassign];
    }
    let lend = Statement::new("GRANT ")
        .ident(leaving)
        .sql(" TO ")
        .ident(keeper.name());
    let back = Statement::new("REVOKE ")
        .ident(leaving)
        .sql(" FROM ")
        .ident(keeper.name());
    vec![lend, reassign, back]
}

/// Makes us a member of a role that we created: without superuser, only members can give objects to it.
pub fn join(role: &str, server: &Server) -> Option<Statement> {
    (!server.attributes.superuser).then(|| {
        let options = if server.version >= BOUND_CREATEROLE {
            " WITH INHERIT TRUE, SET TRUE"
        } else {
            ""
        };
        Statement::new("GRANT ")
            .ident(role)
            .sql(" TO CURRENT_USER")
            .sql(options)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_and_each_owner_has_its_own_keeper() {
        let all = [(1, "a"), (2, "a"), (1, "b")].map(|(oid, owner)| Keeper::of(oid, owner));
        assert_eq!(Keeper::of(1, "a"), all[0]);
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
        assert!(Keeper::of(u32::MAX, &"x".repeat(300)).name().len() <= 63);
    }
}
