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

/// Number of possible names of a keeper. The next one is used if an untrusted role has the first: its seal cannot be
/// verified because the installation's key was lost, or another user created a role with that name.
const NAMES: usize = 4;

const KEEPER: &str = "\
SELECT r.rolname::pg_catalog.text, coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), ''), \
       NOT (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls), \
       ARRAY(SELECT pg_catalog.pg_get_userbyid(m.roleid)::pg_catalog.text FROM pg_catalog.pg_auth_members m \
             WHERE m.member = r.oid ORDER BY m.roleid, m.grantor), \
       ARRAY(SELECT pg_catalog.pg_get_userbyid(m.grantor)::pg_catalog.text FROM pg_catalog.pg_auth_members m \
             WHERE m.member = r.oid ORDER BY m.roleid, m.grantor) \
FROM pg_catalog.pg_roles r WHERE r.rolname = ANY ($1)";

/// The role that receives the objects of dropped roles in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    name: String,
}

/// A role with the name of a keeper, as found on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperFacts {
    /// Its name.
    pub name: String,
    /// Its comment, which the caller checks for its mark.
    pub comment: String,
    /// It cannot log in and has no attributes. Only an administrator could change that.
    pub inert: bool,
    /// The roles that it is a member of, each with a grantor. Everybody with ADMIN OPTION on a role can make a keeper a
    /// member of it.
    pub member_of: Vec<(String, String)>,
}

impl KeeperFacts {
    /// Whether it is inert, and a member of no other role.
    pub fn powerless(&self) -> bool {
        self.inert && self.member_of.is_empty()
    }

    /// Takes the keeper out of the roles that it is a member of. From PostgreSQL 16 on, an administrator without superuser
    /// revokes only as a member of each grantor.
    pub fn leave(&self, server: &Server) -> Vec<Statement> {
        let bound = server.version >= BOUND_CREATEROLE;
        let mut statements = Vec::new();
        for (role, grantor) in &self.member_of {
            if bound && *grantor != server.role {
                statements.extend(join(grantor, server));
            }
            let revoke = Statement::new("REVOKE ")
                .ident(role)
                .sql(" FROM ")
                .ident(&self.name);
            let revoke = if bound {
                revoke.sql(" GRANTED BY ").ident(grantor)
            } else {
                revoke
            };
            statements.push(revoke.sql(" CASCADE"));
        }
        statements
    }
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

    /// This keeper, and its replacements if an untrusted role has its name.
    fn candidates(&self) -> impl Iterator<Item = Self> {
        (1..=NAMES).map(|number| Self {
            name: match number {
                1 => self.name.clone(),
                _ => format!("{}_{number}", self.name),
            },
        })
    }

    /// The query for the roles with its names. Pass the rows of the result to [`Self::facts`].
    pub fn query(&self) -> Query {
        Query::new(KEEPER).texts(self.candidates().map(|keeper| keeper.name).collect())
    }

    /// The result of [`Self::query`].
    pub fn facts(rows: &[Row]) -> Result<Vec<KeeperFacts>, tokio_postgres::Error> {
        let facts = |row: &Row| {
            let (roles, grantors): (Vec<String>, Vec<String>) = (row.try_get(3)?, row.try_get(4)?);
            let inert = row.try_get(2)?;
            Ok(KeeperFacts {
                name: row.try_get(0)?,
                comment: row.try_get(1)?,
                inert,
                member_of: roles.into_iter().zip(grantors).collect(),
            })
        };
        rows.iter().map(facts).collect()
    }

    /// The first name of a trusted keeper, else the first unused name, and whether the role exists. `None` if untrusted
    /// roles have all the names.
    pub fn choose(
        &self,
        found: &[KeeperFacts],
        is_trusted: impl Fn(&KeeperFacts) -> bool,
    ) -> Option<(Self, bool)> {
        let is_there = |keeper: &Self| found.iter().find(|facts| facts.name == keeper.name);
        let trusted = |keeper: &Self| is_there(keeper).is_some_and(&is_trusted);
        let known = self.candidates().find(trusted).map(|keeper| (keeper, true));
        let free = || self.candidates().find(|keeper| is_there(keeper).is_none());
        known.or_else(|| free().map(|keeper| (keeper, false)))
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
        Statement::local_setting("stanchion.handover", role),
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
pub fn reassign(leaving: &str, new_owner: &str) -> Statement {
    Statement::new("REASSIGN OWNED BY ")
        .ident(leaving)
        .sql(" TO ")
        .ident(new_owner)
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

/// Makes the administrator a member of a role. Without superuser, an administrator can reassign objects to and from a
/// role only as its member.
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
        let longest = Keeper::of(u32::MAX, &"x".repeat(300));
        assert!(longest.candidates().all(|keeper| keeper.name().len() <= 63));
    }

    #[test]
    fn a_role_that_is_not_trusted_is_passed_over() {
        let keeper = Keeper::of(1, "a");
        let names: Vec<String> = keeper.candidates().map(|keeper| keeper.name).collect();
        let facts = |index: usize, powerless: bool| KeeperFacts {
            name: names[index].clone(),
            comment: String::new(),
            inert: powerless,
            member_of: Vec::new(),
        };
        let choose = |found: &[KeeperFacts]| {
            let chosen = keeper.choose(found, KeeperFacts::powerless);
            chosen.map(|(keeper, is_there)| (keeper.name, is_there))
        };
        assert_eq!(choose(&[]), Some((names[0].clone(), false)));
        assert_eq!(choose(&[facts(0, true)]), Some((names[0].clone(), true)));
        assert_eq!(choose(&[facts(0, false)]), Some((names[1].clone(), false)));
        let second = [facts(0, false), facts(1, true)];
        assert_eq!(choose(&second), Some((names[1].clone(), true)));
        let taken: Vec<KeeperFacts> = (0..NAMES).map(|index| facts(index, false)).collect();
        assert_eq!(choose(&taken), None);
    }
}
