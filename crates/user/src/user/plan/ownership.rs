//! Whose role it is: made, adopted, or somebody else's; and all that follows for the role itself.

use stanchion_api::instance::Attribute;
use stanchion_api::user::{ExistingRolePolicy, Role};
use stanchion_kernel::Problem;

use super::role::RoleWish;
use super::{Change, memberships, parameters, role};
use crate::user::catalog::{Catalog, RoleFacts};
use crate::user::mark::{self, Mark, Origin};
use crate::user::passwords::Passwords;
use crate::user::target::{Identity, Wanted};

/// What differs of the role: itself, its parameters, its memberships, and its two logins where it has them.
pub fn role_changes(
    wanted: &Wanted,
    catalog: &Catalog,
    passwords: &Passwords,
) -> Result<Vec<Change>, Problem> {
    let origin = claim(&wanted.username, &wanted.identity, wanted.existing, catalog)?;
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
    let none = std::collections::BTreeMap::new();
    let stored = catalog.role.as_ref().map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::diff(
        &wanted.username,
        &wanted.role.parameters,
        stored,
        &wanted.before.grants,
    ));
    let asked = memberships::Asked {
        role: &wanted.username,
        member_of: &wanted.member_of,
        policy: wanted.membership_policy,
        before: &wanted.before.grants,
    };
    changes.extend(memberships::diff(&asked, catalog)?);
    for login in passwords.logins() {
        changes.extend(login_changes(wanted, login)?);
    }
    Ok(changes)
}

/// One of two logins: a member of the role that acts as it, so that what it makes belongs to the role.
fn login_changes(wanted: &Wanted, login: &crate::user::passwords::Login) -> Result<Vec<Change>, Problem> {
    let origin = claim(
        &login.name,
        &wanted.identity,
        ExistingRolePolicy::Fail,
        &login.catalog,
    )?;
    let attributes = Role {
        connection_limit: wanted.role.connection_limit,
        ..Role::default()
    };
    let wish = RoleWish {
        name: &login.name,
        login: login.enabled,
        attributes: &attributes,
        password: login.change.clone(),
        mark: Mark {
            owner: wanted.identity.clone(),
            origin,
        },
    };
    let mut changes = role::diff(&wish, login.catalog.role.as_ref());
    if !login.catalog.memberships.contains_key(&wanted.username) {
        let grant = stanchion_postgres::Statement::new("GRANT ")
            .ident(&wanted.username)
            .sql(" TO ")
            .ident(&login.name);
        changes.push(Change::new(format!("membership of {}", login.name), grant));
    }
    let acts_as = std::collections::BTreeMap::from([("role".to_owned(), wanted.username.clone())]);
    let none = std::collections::BTreeMap::new();
    let stored = login
        .catalog
        .role
        .as_ref()
        .map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::diff(&login.name, &acts_as, stored, &[]));
    Ok(changes)
}

/// Decides whether the role is ours to change, and how it came to be.
pub fn claim(
    name: &str,
    identity: &Identity,
    policy: ExistingRolePolicy,
    catalog: &Catalog,
) -> Result<Origin, Problem> {
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
        Some(mark) if mark.owner.uid == identity.uid => Ok(mark.origin),
        Some(mark) => Err(conflict(
            name,
            &format!(
                "belongs to PostgresUser {}/{}",
                mark.owner.namespace, mark.owner.name
            ),
            "delete one of the two objects, or choose another username",
        )),
        None => adopt(name, facts, policy),
    }
}

/// A role that nobody has marked may be adopted, unless it is too powerful to be handed to whoever may create
/// an object in a namespace.
fn adopt(name: &str, facts: &RoleFacts, policy: ExistingRolePolicy) -> Result<Origin, Problem> {
    let powers = [
        (facts.superuser, "SUPERUSER"),
        (facts.replication, "REPLICATION"),
        (facts.bypass_rls, "BYPASSRLS"),
        (facts.create_role, "CREATEROLE"),
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

/// Powerful attributes need the instance's permission.
pub fn check_attributes(role: &Role, allowed: &[Attribute]) -> Result<(), Problem> {
    let asked = [
        (role.superuser, Attribute::Superuser, "superuser"),
        (role.replication, Attribute::Replication, "replication"),
        (role.bypass_rls, Attribute::BypassRls, "bypassRLS"),
        (role.create_role, Attribute::CreateRole, "createRole"),
    ];
    for (wish, attribute, name) in asked {
        if wish == Some(true) && !allowed.contains(&attribute) {
            return Err(Problem::human(
                "AttributeNotAllowed",
                format!("role.{name} is not allowed on this instance; add it to its spec.allowedAttributes"),
            ));
        }
    }
    Ok(())
}
