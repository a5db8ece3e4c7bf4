//! Applies changes: plans are written before they are executed, and again afterwards.
//!
//! | file | subject |
//! |---|---|
//! | `follow` | applies a decision to the existing plans |
//! | `execute` | executes a plan and records the result |
//! | `decision` | records a person's decision |

mod decision;
mod execute;
mod follow;

use std::collections::BTreeMap;

use stanchion_api::PostgresPolicy;
use stanchion_api::policy::ChangeSummary;
use stanchion_kernel::{Problem, Writer};
use stanchion_roles::apply::{Options, apply as engine};

use self::follow::Pass;
use crate::controller::PolicyController;
use crate::observe::{Left, Observed, slow};
use crate::plan::Plan;
use crate::problems;
use crate::target::Target;

/// The result of the apply step.
#[derive(Default)]
pub struct Applied {
    /// The comparison and its result; `None` if the reconcile did not come that far.
    pub told: Option<Told>,
    /// Events of plans, in order.
    pub happened: Vec<Happening>,
}

/// The comparison and its result.
pub struct Told {
    /// The number of differences by kind.
    pub summary: ChangeSummary,
    /// The differences as SQL, if they were not applied, and whether the text is truncated.
    pub sql: Option<(String, bool)>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The plan.
    pub plan: Option<String>,
    /// The result of the plan.
    pub end: End,
    /// The fingerprints of the current passwords.
    pub marks: Option<BTreeMap<String, String>>,
}

/// The result of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The plan had no changes.
    InSync,
    /// It was executed.
    Applied,
    /// It waits for approval.
    Waiting,
    /// It was rejected.
    Rejected,
    /// The policy only observes.
    Observed,
}

/// Something that happened to a plan, which becomes an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Happening {
    Created(String),
    Approved(String, String),
    Rejected(String, String),
    Started(String),
    Succeeded(String, usize),
    Failed(String, String),
}

/// Applies the plan.
pub async fn apply(
    controller: &PolicyController,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    match (target, observed, plan) {
        (Target::Present(wanted), Observed::Seen(seen), Plan::Follow(decided)) => {
            let pass = Pass {
                controller,
                write,
                wanted,
                seen,
            };
            let done = Box::pin(pass.follow(*decided, applied)).await;
            done.map_err(|problem| slow(problem, wanted))
        }
        (Target::Absent(leaving), observed, _) => {
            if let Observed::Leaving(left) = observed {
                Box::pin(take_back(controller, write, left)).await?;
            }
            for other in controller.setup.claims.release(&leaving.who.key) {
                write.wake::<PostgresPolicy>(&other);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Revokes what only this policy granted.
async fn take_back(controller: &PolicyController, write: &Writer, left: &Left) -> Result<(), Problem> {
    write.may_write()?;
    let setup = &controller.setup;
    let exclusive = setup.pools.exclusive(&left.database, setup.turn).await;
    let (_turn, mut session) = exclusive.map_err(|error| problems::of_postgres(error, "ApplyFailed"))?;
    let options = Options {
        lock_wait: setup.turn,
        ..Options::default()
    };
    engine(&mut session, &left.desired, &options)
        .await
        .map_err(problems::of_apply)?;
    Ok(())
}
