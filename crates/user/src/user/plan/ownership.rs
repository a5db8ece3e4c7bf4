//! Whose role it is: made, adopted, or somebody else's; and all that follows for the role itself.

use std::collections::BTreeMap;

use stanchion_api::user::ExistingRolePolicy;
use stanchion_kernel::Problem;
use stanchion_postgres::Statement;
use stanchion_postgres::server::BOUND_CREATEROLE;

use super::role::RoleWish;
use super::{Change, logins, memberships, parameters, role};
use crate::user::catalog::{Catalog, Reach, RoleFacts};
use crate::user::mark::{self, Mark, Origin};
use crate::user::passwords::Passwords;
use crate::user::target::{Identity, Wanted};

/// What differs of the role: itself, its parameters, its memberships, and its two logins where it has them.
pub fn role_changes(
    wanted: &Wanted,
    catalog: &Catalog,
    passwords: &Passwords,
) -> Result<Vec<Change>, Problem> {
    let origin = claim(&claimant(wanted), catalog)?;
    let wish = RoleWish {
        name: &wanted.username,
        login: wanted.role.login && !passwords.is_dual(),
        attributes: &wanted.role,
        password: passwords.main_change(),
        mark: Mark {
            owner: wanted.identity.clone(),
            origin,
        },
    };
    let mut changes = role::diff(&wish, catalog.role.as_ref());
    let none = BTreeMap::new();
    let stored = catalog.role.as_ref().map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::diff(
        &wanted.username,
        &wanted.role.parameters,
        stored,
        &wanted.before.grants,
    ));
    let is = catalog.role.as_ref().is_none_or(|facts| facts.inherit);
    let asked = memberships::Asked {
        role: &wanted.username,
        member_of: &wanted.member_of,
        policy: wanted.membership_policy,
        before: &wanted.before.grants,
        inherits: wanted.role.inherit.unwrap_or(is),
    };
    changes.extend(memberships::diff(&asked, catalog)?);
    for login in passwords.logins() {
        changes.extend(logins::diff(wanted, login, passwords.is_dual())?);
    }
    if gives_a_database(wanted, catalog) {
        changes.extend(
            act_as(&wanted.username, catalog)
                .map(|statement| Change::privilege("the administrator's membership", statement)),
        );
    }
    Ok(changes)
}

/// Whether a database is about to become the role's.
fn gives_a_database(wanted: &Wanted, catalog: &Catalog) -> bool {
    wanted.databases.iter().any(|(name, wish)| {
        wish.owner
            && catalog
                .databases
                .get(name)
                .is_none_or(|facts| facts.owner != wanted.username)
    })
}

/// The statement that lets us act for a role, where we may not yet: who is no superuser gives things to a role, and
/// takes them from it, only as its member.
pub fn act_as(role: &str, catalog: &Catalog) -> Option<Statement> {
    let server = &catalog.server;
    (!server.may_act_as(catalog.powers)).then(|| {
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

/// Who claims a role.
pub struct Claimant<'a> {
    /// The role.
    pub name: &'a str,
    /// The object.
    pub identity: &'a Identity,
    /// What to do with a role that is there already.
    pub policy: ExistingRolePolicy,
    /// The oid of the role that this object made, by its status.
    pub made: Option<u32>,
}

fn claimant(wanted: &Wanted) -> Claimant<'_> {
    Claimant {
        name: &wanted.username,
        identity: &wanted.identity,
        policy: wanted.existing,
        made: wanted.before.made,
    }
}

/// Whether the role was there before the object, so that not everything that it holds is ours.
pub fn is_adopted(wanted: &Wanted, catalog: &Catalog) -> bool {
    claim(&claimant(wanted), catalog).is_ok_and(|origin| origin == Origin::Adopted)
}

/// Decides whether the role is ours to change, and how it came to be.
pub fn claim(claimant: &Claimant<'_>, catalog: &Catalog) -> Result<Origin, Problem> {
    let name = claimant.name;
    if [&catalog.server.role, &catalog.server.login]
        .into_iter()
        .any(|own| own == name)
    {
        return Err(conflict(
            name,
            "is the operator's own role",
            "choose another username",
        ));
    }
    let Some(facts) = &catalog.role else {
        return Ok(Origin::Created);
    };
    match mark::split(&facts.comment).1 {
        Some(mark) if mark.owner.uid == claimant.identity.uid => Ok(mark.origin),
        Some(mark) => Err(conflict(
            name,
            &format!(
                "belongs to PostgresUser {}/{}",
                mark.owner.namespace, mark.owner.name
            ),
            "delete one of the two objects, or choose another username",
        )),
        // Somebody wrote another comment over the mark; the oid says that it is still the role that we made.
        None if claimant.made == Some(facts.oid) => Ok(Origin::Created),
        None => {
            let reach = catalog.existing.get(name).copied().unwrap_or_default();
            adopt(name, facts, reach, claimant.policy)
        }
    }
}

/// A role that nobody has marked may be adopted, unless it is too powerful to be handed to whoever may create
/// an object in a namespace: by itself, or by what it is a member of.
fn adopt(name: &str, facts: &RoleFacts, reach: Reach, policy: ExistingRolePolicy) -> Result<Origin, Problem> {
    let powers = [
        (facts.superuser || reach.superuser, "SUPERUSER"),
        (facts.replication || reach.replication, "REPLICATION"),
        (facts.bypass_rls || reach.bypass_rls, "BYPASSRLS"),
        (facts.create_role || reach.create_role, "CREATEROLE"),
    ];
    if let Some((_, power)) = powers.into_iter().find(|(has, _)| *has) {
        return Err(conflict(
            name,
            &format!("exists and has {power}"),
            "such a role is never adopted",
        ));
    }
    match policy {
        ExistingRolePolicy::Adopt => Ok(Origin::Adopted),
        ExistingRolePolicy::Fail => Err(conflict(
            name,
            "exists already",
            "drop it, choose another username, or set existingRolePolicy: Adopt",
        )),
    }
}

fn conflict(name: &str, what: &str, advice: &str) -> Problem {
    Problem::human("RoleConflict", format!("role {name:?} {what}; {advice}"))
}
