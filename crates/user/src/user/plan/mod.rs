//! Plans the changes: a pure function of the request and the current state.
//!
//! The same functions are used twice. `plan` compares with what `observe` read, to find out whether there is anything
//! to do; `apply` compares again inside of the transaction, under the database's lock, and runs exactly what differs
//! then.

pub mod cleanup;
pub mod database;
pub mod grants;
pub mod guards;
pub mod lock_out;
pub mod logins;
pub mod memberships;
pub mod ownership;
pub mod parameters;
pub mod role;
#[cfg(test)]
mod tests;

use kube::core::ObjectMeta;
use stanchion_api::user::{AppliedGrant, DriftMode, GrantKind};
use stanchion_kernel::Problem;
use stanchion_kernel::apply::Intent;
use stanchion_postgres::Statement;

use super::catalog::Catalog;
use super::observe::{Current, Observed};
use super::target::{Target, Wanted};

/// One difference and the statement that removes it.
#[derive(Clone, Debug)]
pub struct Change {
    /// What differs, in the terms of the spec.
    pub what: String,
    /// The statement that removes the difference.
    pub statement: Statement,
    /// The condition that reports it.
    pub about: About,
    /// The database; `None` for what belongs to the whole server.
    pub database: Option<String>,
}

/// The subject of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The role itself.
    Role,
    /// Its password, perhaps with more in the same statement.
    Password,
    /// Its privileges.
    Privileges,
}

impl Change {
    /// A change of the role.
    pub fn role(what: impl Into<String>, statement: Statement) -> Self {
        Self {
            what: what.into(),
            statement,
            about: About::Role,
            database: None,
        }
    }

    /// The same, in a database.
    #[must_use]
    pub fn within(self, database: &str) -> Self {
        Self {
            database: Some(database.into()),
            ..self
        }
    }

    /// A change of the role's privileges.
    pub fn privilege(what: impl Into<String>, statement: Statement) -> Self {
        Self {
            about: About::Privileges,
            ..Self::role(what, statement)
        }
    }
}

/// The plan of a reconcile.
pub enum Plan {
    /// Nothing differs, or nothing may be changed.
    Nothing,
    /// Show these statements and run none.
    ReportOnly(Vec<Change>),
    /// Apply these changes.
    Ensure(Box<EnsurePlan>),
    /// Remove the role.
    Cleanup(cleanup::CleanupPlan),
    /// The server may no longer be used: disable these logins.
    LockOut(Vec<String>),
}

/// The changes of an active role.
pub struct EnsurePlan {
    /// The differences in the database at the time of the inspection.
    pub changes: Vec<Change>,
    /// The credentials Secret, if it differs. It is written first: a password that is in no Secret is lost with the
    /// process.
    pub credentials: Option<Intent>,
    /// The Secrets of earlier names.
    pub stale: Vec<ObjectMeta>,
}

/// Decides what to do.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    match (target, observed) {
        (Target::Ensure(wanted), Observed::Ensure(current)) => ensure_plan(wanted, current),
        (Target::Cleanup(cleanup), Observed::Cleanup(state)) => cleanup::plan(cleanup, state),
        (_, Observed::Withdrawn(withdrawn)) if withdrawn.logins.is_empty() => Err(lock_out::problem()),
        (_, Observed::Withdrawn(withdrawn)) => Ok(Plan::LockOut(withdrawn.logins.clone())),
        (Target::Invalid(_, refusal), _) => Err(Problem::permanent(refusal.reason, refusal.message.clone())),
        _ => Ok(Plan::Nothing),
    }
}

fn ensure_plan(wanted: &Wanted, current: &Current) -> Result<Plan, Problem> {
    let mut changes = differences(wanted, current)?;
    if wanted.plan_only {
        return Ok(Plan::ReportOnly(changes));
    }
    if is_left_alone(wanted, current) {
        changes.clear();
    }
    let credentials = current.credentials.clone();
    let stale = current.stale_secrets.clone();
    if changes.is_empty() && credentials.is_none() && stale.is_empty() {
        return Ok(Plan::Nothing);
    }
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        changes,
        credentials,
        stale,
    })))
}

/// Whether the differences are drift that the mode leaves. A new spec, a new password and an expired login are applied
/// in every drift mode.
pub fn is_left_alone(wanted: &Wanted, current: &Current) -> bool {
    wanted.drift != DriftMode::Correct && wanted.before.converged && !current.passwords.is_moving()
}

/// Everything that differs, on the server and in every database.
pub fn differences(wanted: &Wanted, current: &Current) -> Result<Vec<Change>, Problem> {
    guards::check(wanted, &current.catalog)?;
    let mut changes = ownership::role_changes(wanted, &current.catalog, &current.passwords)?;
    let creation = database::creation(wanted, &current.catalog)?;
    let made = creation.is_some();
    changes.extend(creation);
    for (name, request) in &wanted.databases {
        match (current.catalog.databases.get(name), current.contents.get(name)) {
            (Some(facts), Some(contents)) => {
                guards::check_extensions(request, contents, &current.catalog)?;
                changes.extend(database::diff(
                    name,
                    wanted,
                    request,
                    facts,
                    contents,
                    &current.catalog,
                ));
            }
            // The plan that is shown includes what follows the creation.
            _ if made && *name == wanted.database => {
                let (facts, contents) = database::fresh(&current.catalog);
                guards::check_extensions(request, &contents, &current.catalog)?;
                changes.extend(database::diff(
                    name,
                    wanted,
                    request,
                    &facts,
                    &contents,
                    &current.catalog,
                ));
            }
            _ => {}
        }
    }
    for (name, contents) in &current.contents {
        if let (false, Some(facts)) = (
            wanted.databases.contains_key(name),
            current.catalog.databases.get(name),
        ) {
            changes.extend(database::leave(name, wanted, facts, contents));
        }
    }
    Ok(changes)
}

/// Everything that the operator has granted after the plan is applied, and may revoke later.
pub fn holdings(wanted: &Wanted, current: &Current) -> Vec<AppliedGrant> {
    let adopted = ownership::is_adopted(wanted, &current.catalog);
    let mut all = Vec::new();
    for (name, request) in &wanted.databases {
        let fresh = database::fresh(&current.catalog);
        let here = current
            .catalog
            .databases
            .get(name)
            .zip(current.contents.get(name));
        let (facts, contents) = here.unwrap_or((&fresh.0, &fresh.1));
        let here = grants::wanted(name, &wanted.username, request, facts, contents);
        all.extend(if adopted {
            grants::ours(here, &wanted.before.grants, facts, contents)
        } else {
            here
        });
    }
    all.extend(shared_holdings(wanted, &current.catalog, adopted));
    all
}

/// The same for what belongs to no database.
pub fn shared_holdings(wanted: &Wanted, catalog: &Catalog, adopted: bool) -> Vec<AppliedGrant> {
    let before = &wanted.before.grants;
    let had = |grant: &AppliedGrant| {
        let name = grant.name.as_deref().unwrap_or_default();
        match grant.kind {
            GrantKind::Membership => catalog.memberships.contains_key(name),
            _ => catalog
                .role
                .as_ref()
                .is_some_and(|role| role.parameters.contains_key(&name.to_ascii_lowercase())),
        }
    };
    memberships::applied(&wanted.member_of)
        .chain(parameters::applied(&wanted.role.parameters))
        .filter(|grant| !adopted || before.contains(grant) || !had(grant))
        .collect()
}
