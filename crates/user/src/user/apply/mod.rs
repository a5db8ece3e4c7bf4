//! Applies the plan. Every step is idempotent; the process can be killed between any two.

pub mod cleanup;
pub mod ensure;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::user::AppliedGrant;
use stanchion_kernel::{Problem, Writer};
use stanchion_postgres::Batch;
use stanchion_postgres::handover::Disarmed;

use super::observe::{self, Observed, Withdrawn};
use super::plan::{Change, Plan, lock_out};
use super::target::Target;
use crate::setup::Setup;

/// What was done, and what is known afterwards.
#[derive(Debug, Default)]
pub struct Applied {
    /// What was changed, in the terms of the spec.
    pub changed: Vec<String>,
    /// What the role now holds because of the operator; `None` if that is unknown.
    pub grants: Option<Vec<AppliedGrant>>,
    /// Whether the database was created.
    pub database_made: bool,
    /// The role's oid.
    pub oid: Option<u32>,
    /// Whether a password was set.
    pub password_set: bool,
    /// Whether the credentials Secret was written.
    pub credentials_written: bool,
    /// Some of the objects that were disarmed before they were reassigned.
    pub disarmed: Vec<String>,
    /// The statements that would run (`mode: Plan`).
    pub shown: Option<Vec<String>>,
}

/// How many disarmed objects are named.
const SHOWN: usize = 20;

impl Applied {
    /// Records what was disarmed in a database.
    fn disarm(&mut self, database: &str, armed: &Disarmed) {
        let room = SHOWN.saturating_sub(self.disarmed.len());
        let some = armed.some.iter().take(room);
        let named = some.len();
        self.disarmed
            .extend(some.map(|what| format!("{what} in database {database}")));
        let more = armed.count - i64::try_from(named).unwrap_or(i64::MAX);
        if more > 0 {
            self.disarmed.push(format!("{more} more in database {database}"));
        }
    }
}

/// Applies the plan.
pub async fn apply(
    setup: &Setup,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    match (plan, target, observed) {
        (Plan::ReportOnly(changes), ..) => {
            applied.shown = Some(show(&changes));
            Ok(())
        }
        (Plan::Ensure(work), Target::Ensure(wanted), Observed::Ensure(current)) => {
            if let Some(intent) = &work.credentials {
                write.apply::<Secret>(intent).await?;
                applied.credentials_written = true;
            }
            if !work.changes.is_empty() {
                write.may_write()?;
                ensure::make(setup, wanted, current, applied).await?;
            }
            // Last: until now an application may still read the old one.
            for stale in &work.stale {
                write.delete::<Secret>(stale).await?;
                applied.credentials_written = true;
            }
            Ok(())
        }
        (Plan::Cleanup(plan), Target::Cleanup(cleanup), Observed::Cleanup(state)) => {
            write.may_write()?;
            cleanup::remove(setup, cleanup, state, &plan, applied).await
        }
        (Plan::LockOut(names), _, Observed::Withdrawn(withdrawn)) => {
            write.may_write()?;
            lock_out(setup, withdrawn, &names).await
        }
        _ => Ok(()),
    }
}

/// Disables the logins of an object whose namespace may no longer use the server, without waiting for any lock, and
/// reports that.
async fn lock_out(setup: &Setup, withdrawn: &Withdrawn, names: &[String]) -> Result<(), Problem> {
    let mut session = setup.pools.get(&withdrawn.server.target).await?;
    let statements = names.iter().map(|name| lock_out::statement(name)).collect();
    session.apply(&Batch::new(statements)).await?;
    for name in names {
        observe::terminate(&session, name).await?;
    }
    Err(lock_out::problem())
}

/// The statements without their secrets, and where they would run.
fn show(changes: &[Change]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut place = None;
    for change in changes {
        if change.database.is_some() && change.database != place {
            place.clone_from(&change.database);
            let name = place.as_deref().unwrap_or_default();
            lines.push(format!("-- in database {name:?}"));
        }
        lines.push(change.statement.to_string());
    }
    lines
}
