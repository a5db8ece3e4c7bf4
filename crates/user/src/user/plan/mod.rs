//! What to do: a pure function of what is wanted and what is there.
//!
//! The same functions are used twice. `plan` compares with what `observe` saw, to know whether there is
//! anything to do at all; `apply` compares again inside the transaction, under the database's lock, and runs
//! exactly what differs then.

pub mod database;
pub mod goodbye;
pub mod grants;
pub mod memberships;
pub mod ownership;
pub mod parameters;
pub mod role;

use stanchion_kernel::Problem;
use stanchion_kernel::apply::Intent;
use stanchion_postgres::Statement;

use super::observe::{Observed, Present};
use super::target::{Target, Wanted};

/// One difference and the statement that removes it.
#[derive(Clone, Debug)]
pub struct Change {
    /// What differs, in the words of the spec.
    pub what: String,
    /// What makes it so.
    pub statement: Statement,
}

impl Change {
    /// A change.
    pub fn new(what: impl Into<String>, statement: Statement) -> Self {
        Self {
            what: what.into(),
            statement,
        }
    }
}

/// What a pass is going to do.
pub enum Plan {
    /// Nothing differs, or nothing may be touched.
    Nothing,
    /// Show these statements and run none.
    Show(Vec<Change>),
    /// Make it so.
    Make(Box<Work>),
    /// Take the role away.
    Remove(goodbye::Goodbye),
}

/// What has to be made so.
pub struct Work {
    /// What differs in the database, as it was when it was looked at.
    pub changes: Vec<Change>,
    /// The Secret for the application, when it differs. It is written first: a password that is in no Secret is
    /// lost with the process.
    pub credentials: Option<Intent>,
}

/// Decides what to do.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    match (target, observed) {
        (Target::Present(wanted), Observed::Present(present)) => present_plan(wanted, present),
        (Target::Absent(leaving), Observed::Leaving(seen)) => goodbye::plan(leaving, seen),
        _ => Ok(Plan::Nothing),
    }
}

fn present_plan(wanted: &Wanted, present: &Present) -> Result<Plan, Problem> {
    let changes = differences(wanted, present)?;
    if wanted.plan_only {
        return Ok(Plan::Show(changes));
    }
    let drifted = wanted.before.settled && !present.is_rotating() && !present.password_changed();
    if drifted && !changes.is_empty() && wanted.drift != stanchion_api::user::DriftMode::Correct {
        return Ok(Plan::Nothing);
    }
    let credentials = present.credentials.clone();
    if changes.is_empty() && credentials.is_none() {
        return Ok(Plan::Nothing);
    }
    Ok(Plan::Make(Box::new(Work { changes, credentials })))
}

/// Everything that differs, on the server and in every database.
pub fn differences(wanted: &Wanted, present: &Present) -> Result<Vec<Change>, Problem> {
    let mut changes = ownership::role_changes(wanted, &present.catalog, &present.passwords)?;
    changes.extend(database::creation(wanted, &present.catalog)?);
    for (name, wish) in &wanted.databases {
        if let (Some(facts), Some(contents)) =
            (present.catalog.databases.get(name), present.contents.get(name))
        {
            changes.extend(database::diff(name, wanted, wish, facts, contents));
        }
    }
    for (name, contents) in &present.contents {
        if let (false, Some(facts)) = (
            wanted.databases.contains_key(name),
            present.catalog.databases.get(name),
        ) {
            changes.extend(database::leave(name, wanted, facts, contents));
        }
    }
    Ok(changes)
}
