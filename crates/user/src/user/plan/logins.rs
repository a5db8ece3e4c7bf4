//! Plans the two logins of `DualUser`: members of the role that act as it, so that the role owns what they create.

use std::collections::BTreeMap;

use stanchion_api::user::{ExistingRolePolicy, Role};
use stanchion_kernel::Problem;
use stanchion_kernel::marks::Mark;
use stanchion_postgres::Statement;

use super::ownership::{Claimant, claim};
use super::role::RoleRequest;
use super::{Change, parameters, role};
use crate::user::passwords::Login;
use crate::user::target::{Before, Wanted};

/// The differences of one login. A login that is not in use is not created.
pub fn diff(wanted: &Wanted, login: &Login, dual: bool) -> Result<Vec<Change>, Problem> {
    let unknown = Before::default();
    let claimant = Claimant {
        name: &login.name,
        identity: &wanted.identity,
        policy: ExistingRolePolicy::Fail,
        before: &unknown,
        announced: wanted.before.active_login.as_ref() == Some(&login.name)
            || wanted.before.retiring_logins.contains(&login.name),
    };
    let facts = login.catalog.role.as_ref();
    let origin = match (claim(&claimant, &login.catalog), dual) {
        (claimed, true) => claimed?,
        (Ok(origin), false) => origin,
        // There were two logins once; a role of that name that is not ours does not matter now.
        (Err(_), false) => return Ok(Vec::new()),
    };
    if !login.enabled && facts.is_none() {
        return Ok(Vec::new());
    }
    // Limits and settings apply to the login, not to the role itself.
    let attributes = Role {
        connection_limit: wanted.role.connection_limit,
        valid_until: wanted.role.valid_until,
        ..Role::default()
    };
    let request = RoleRequest {
        name: &login.name,
        login: login.enabled && wanted.role.login,
        attributes: &attributes,
        password: login.change.clone(),
        mark: Mark {
            owner: wanted.identity.owner(),
            origin,
        },
    };
    let mut changes = role::diff(&request, &login.catalog);
    for change in &mut changes {
        if facts.is_some() {
            change.what = format!("{} of login {}", change.what, login.name);
        }
    }
    if !login.enabled {
        return Ok(changes);
    }
    if !login.catalog.memberships.contains_key(&wanted.username) {
        let grant = Statement::new("GRANT ")
            .ident(&wanted.username)
            .sql(" TO ")
            .ident(&login.name);
        changes.push(Change::privilege(format!("membership of {}", login.name), grant));
    }
    let mut settings = wanted.role.parameters.clone();
    settings.insert("role".to_owned(), wanted.username.clone());
    let none = BTreeMap::new();
    let stored = facts.map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::diff(
        &login.name,
        &settings,
        stored,
        &wanted.before.grants,
    ));
    Ok(changes)
}
