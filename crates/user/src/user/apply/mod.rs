//! Makes it so. Every step may be repeated; the process can be killed between any two.

pub mod making;
pub mod removing;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::user::AppliedGrant;
use stanchion_kernel::{Problem, Writer};

use super::observe::Observed;
use super::plan::{Change, Plan};
use super::target::Target;
use crate::setup::Setup;

/// What was done, and what is now known to be so.
#[derive(Debug, Default)]
pub struct Applied {
    /// What was changed, in the words of the spec.
    pub changed: Vec<String>,
    /// What the role now holds because of us; `None` when that was not established.
    pub grants: Option<Vec<AppliedGrant>>,
    /// The database was made.
    pub database_made: bool,
    /// The role's oid.
    pub oid: Option<u32>,
    /// A password was set.
    pub password_set: bool,
    /// The Secret for the application was written.
    pub credentials_written: bool,
    /// Statements that would be run (`mode: Plan`).
    pub shown: Option<Vec<String>>,
}

/// Does what the plan says.
pub async fn apply(
    setup: &Setup,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    match (plan, target, observed) {
        (Plan::Show(changes), ..) => {
            applied.shown = Some(show(&changes));
            Ok(())
        }
        (Plan::Make(work), Target::Present(wanted), Observed::Present(present)) => {
            if let Some(intent) = &work.credentials {
                write.apply::<Secret>(intent).await?;
                applied.credentials_written = true;
            }
            if !work.changes.is_empty() {
                write.may_write()?;
                making::make(setup, wanted, present, applied).await?;
            }
            // Last: until here an application may still read the old one.
            if let Some(stale) = &work.stale {
                write.delete::<Secret>(stale).await?;
                applied.credentials_written = true;
            }
            Ok(())
        }
        (Plan::Remove(goodbye), Target::Absent(leaving), Observed::Leaving(left)) => {
            write.may_write()?;
            removing::remove(setup, leaving, left, &goodbye).await
        }
        _ => Ok(()),
    }
}

/// The statements without their secrets, and where they would be run.
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
