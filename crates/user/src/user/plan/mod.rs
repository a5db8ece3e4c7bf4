//! Plans the changes: a pure function of the request and the current state.
//!
//! The same functions are used twice. `plan` compares with what `observe` read, to find out whether there is anything
//! to do; `apply` compares again inside of the transaction, under the database's lock, and runs exactly what differs
//! then.

pub(super) mod database;
pub(super) mod grants;
pub(super) mod memberships;
pub(super) mod parameters;
pub(super) mod role;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::user::{AppliedGrant, DriftMode, GrantKind};
use stanchion_kernel::apply::{self, Intent, ObjectChange, Takeover};
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Inputs, Problem};
use stanchion_postgres::{ConnectionConfig, Statement};

use super::catalog::{Catalog, Viewer};
use super::observe::{Current, Observed};
use super::passwords::{self, Passwords};
use super::sessions::{self, Ending};
use super::target::Wanted;
use super::{guards, output};

/// One difference and the statement that removes it.
#[derive(Clone, Debug)]
pub struct Change {
    /// What differs, in the terms of the spec.
    pub what: String,
    /// The statement that removes the difference.
    pub statement: Statement,
    /// The settings that it needs: a statement before it, and one after it.
    pub setting: [Option<Statement>; 2],
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
    Privileges,
}

impl Change {
    /// A change of the role.
    pub fn role(what: impl Into<String>, statement: Statement) -> Self {
        Self {
            what: what.into(),
            statement,
            setting: [None, None],
            about: About::Role,
            database: None,
        }
    }

    /// What is to run, in order.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        let [before, after] = &self.setting;
        before.iter().chain([&self.statement]).chain(after)
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
    /// For a server that may be used.
    Ensure(Box<EnsurePlan>),
    /// The server may no longer be used: disable these logins there.
    LockOut(Box<ConnectionConfig>, Vec<String>),
}

/// The changes of a role, and of what belongs to it.
pub struct EnsurePlan {
    /// The server's address.
    pub server: String,
    /// What the report needs to know, too.
    pub decided: Arc<Decided>,
    /// The changes to show and not to make (`mode: Plan`).
    pub shown: Option<Vec<Change>>,
    /// The changes in the databases.
    pub sql: Option<SqlPlan>,
    /// The administrator's connection.
    pub admin: ConnectionConfig,
    /// The sessions to end, which no change of this plan ends.
    pub endings: Vec<Ending>,
    /// The credentials Secret, if it differs. It is written first: a password that is in no Secret is lost with the
    /// process.
    pub credentials: Option<ObjectChange>,
    /// The Secrets of earlier names go last: until then an application may still read the old one.
    pub stale: Vec<ObjectChange>,
}

/// What was decided about a role, whether or not anything is to be done.
#[derive(Default)]
pub struct Decided {
    pub passwords: Passwords,
    /// Drift that the mode leaves.
    pub left: Vec<Change>,
    /// Everything that the operator has granted once the role is as desired.
    pub holdings: Vec<AppliedGrant>,
}

/// Where something differs. `apply` finds out under the lock what that is by then.
pub struct SqlPlan {
    /// The administrator's connection.
    pub admin: ConnectionConfig,
    /// The rules and marks.
    pub viewer: Viewer,
    /// Whether the object's database exists.
    pub exists: bool,
    /// Its creation, if the spec asks for it: one of these.
    pub creation: Vec<Change>,
}

impl EnsurePlan {
    /// Whether nothing is written.
    pub fn is_idle(&self) -> bool {
        self.sql.is_none() && self.credentials.is_none() && self.stale.is_empty() && self.endings.is_empty()
    }
}

/// Decides what to do.
pub(super) fn plan(wanted: &Wanted, observed: &Observed, inputs: &mut Inputs<'_>) -> Result<Plan, Problem> {
    match observed {
        Observed::Open(current) => Ok(Plan::Ensure(Box::new(ensure(wanted, current, inputs)?))),
        Observed::Withdrawn(withdrawn) => Ok(Plan::LockOut(
            Box::new(withdrawn.server.target.clone()),
            withdrawn.logins.clone(),
        )),
    }
}

fn ensure(wanted: &Wanted, current: &Current, inputs: &mut Inputs<'_>) -> Result<EnsurePlan, Problem> {
    guards::check(wanted, &current.catalog)?;
    let passwords = passwords::decide(wanted, &current.source, current.roles(), inputs)?;
    let credentials = credentials(wanted, current, &passwords)?;
    let changes = differences(wanted, current, &passwords)?;
    let mut decided = Decided {
        holdings: holdings(wanted, current),
        passwords,
        left: Vec::new(),
    };
    let mut plan = EnsurePlan {
        server: current.server.target.to_string(),
        decided: Arc::default(),
        shown: None,
        sql: None,
        admin: current.server.target.clone(),
        endings: Vec::new(),
        credentials: None,
        stale: Vec::new(),
    };
    if wanted.plan_only {
        plan.shown = Some(changes);
    } else {
        plan.credentials = credentials;
        plan.endings = sessions::due(wanted, &decided.passwords, &current.sessions);
        // Without the password the Secret of the new name is not written yet.
        let stale = current
            .stale_secrets
            .iter()
            .filter(|_| !decided.passwords.keeps_secrets());
        plan.stale = stale
            .map(|meta| ObjectChange::delete::<Secret>(meta, &()))
            .collect();
        if is_left_alone(wanted, &decided.passwords) {
            decided.left = changes;
        } else if !changes.is_empty() {
            for (name, contents) in &current.contents {
                if let Some(request) = wanted.databases.get(name) {
                    database::check_schemas(name, request, contents)?;
                }
            }
            plan.sql = Some(SqlPlan {
                admin: current.server.target.clone(),
                viewer: current.server.viewer.clone(),
                exists: current.catalog.databases.contains_key(&wanted.database),
                creation: database::creation(wanted, &current.catalog)?,
            });
        }
    }
    plan.decided = Arc::new(decided);
    Ok(plan)
}

/// The credentials Secret, if it differs from the existing one.
fn credentials(
    wanted: &Wanted,
    current: &Current,
    passwords: &Passwords,
) -> Result<Option<ObjectChange>, Problem> {
    // While the password cannot be read, the existing Secret stays.
    let asked = wanted.credentials.as_ref();
    let Some(asked) = asked.filter(|_| passwords.unavailable.is_none()) else {
        return Ok(None);
    };
    let child = output::secret(asked, wanted, &current.server, passwords)?;
    let intent = Intent::new(&child, &current.parent)?;
    let live = current.credentials.as_ref();
    let decided = apply::decide(intent, live, &current.parent, Takeover::Refuse);
    let conflict = |problem: Problem| problem.with_reason("SecretConflict").with_cause(Cause::Conflict);
    let intent = decided.map_err(conflict)?;
    Ok(intent.map(ObjectChange::Apply))
}

/// Whether the differences are drift that the mode leaves. A new spec, a new password and an expired login are applied
/// in every drift mode.
pub(super) fn is_left_alone(wanted: &Wanted, passwords: &Passwords) -> bool {
    wanted.drift != DriftMode::Correct && wanted.before.converged && !passwords.is_moving()
}

/// Everything that differs, on the server and in every database.
pub(super) fn differences(
    wanted: &Wanted,
    current: &Current,
    passwords: &Passwords,
) -> Result<Vec<Change>, Problem> {
    let mut changes = role::changes(wanted, &current.catalog, passwords)?;
    let creation = database::creation(wanted, &current.catalog)?;
    let made = !creation.is_empty();
    changes.extend(creation.into_iter().take(1));
    for (name, request) in &wanted.databases {
        match (current.catalog.databases.get(name), current.contents.get(name)) {
            (Some(facts), Some(contents)) => {
                database::check_extensions(request, contents, &current.catalog)?;
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
                database::check_extensions(request, &contents, &current.catalog)?;
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
pub(super) fn holdings(wanted: &Wanted, current: &Current) -> Vec<AppliedGrant> {
    let adopted = guards::is_adopted(wanted, &current.catalog);
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
pub(super) fn shared_holdings(wanted: &Wanted, catalog: &Catalog, adopted: bool) -> Vec<AppliedGrant> {
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
