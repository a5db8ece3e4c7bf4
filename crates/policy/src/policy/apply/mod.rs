//! Applies changes: plans are written before they are executed, and again afterwards.
//!
//! | file | subject |
//! |---|---|
//! | `follow` | applies a decision to the existing plans |
//! | `execute` | executes a plan and records the result |
//! | `decision` | records a person's decision |

mod advance;
mod decision;
mod execute;

use std::collections::BTreeMap;

use stanchion_api::PostgresPolicy;
use stanchion_api::policy::ChangeSummary;
use stanchion_kernel::{Problem, Writer};
use stanchion_roles::apply::{Options, apply as engine};

use self::advance::Pass;
use crate::policy::PolicyController;
use crate::policy::observe::{CleanupState, Observed, retry_at_interval};
use crate::policy::plan::Plan;
use crate::policy::target::Target;
use crate::problems;

/// The result of the apply step.
#[derive(Default)]
pub struct Applied {
    /// The comparison and its result; `None` if the reconcile did not come that far.
    pub result: Option<PassResult>,
    /// Events of plans, in order.
    pub plan_events: Vec<PlanEvent>,
}

/// The comparison and its result.
pub struct PassResult {
    /// The number of differences by kind.
    pub summary: ChangeSummary,
    /// The differences as SQL, if they were not applied, and whether the text is truncated.
    pub sql: Option<(String, bool)>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The plan.
    pub plan: Option<String>,
    /// The result of the plan.
    pub outcome: PlanOutcome,
    /// The fingerprints of the current passwords.
    pub fingerprints: Option<BTreeMap<String, String>>,
}

/// The result of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOutcome {
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
pub enum PlanEvent {
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
        (Target::Ensure(wanted), Observed::Ensure(current), Plan::Ensure(decided)) => {
            let pass = Pass {
                controller,
                write,
                wanted,
                current,
            };
            let done = Box::pin(pass.advance(*decided, applied)).await;
            done.map_err(|problem| retry_at_interval(problem, wanted))
        }
        (Target::Cleanup(cleanup), observed, _) => {
            if let Observed::Cleanup(state) = observed {
                Box::pin(revoke(controller, write, state)).await?;
            }
            for other in controller.setup.claims.release(&cleanup.who.key) {
                write.wake::<PostgresPolicy>(&other);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Revokes what only this policy granted.
async fn revoke(controller: &PolicyController, write: &Writer, state: &CleanupState) -> Result<(), Problem> {
    write.may_write()?;
    let setup = &controller.setup;
    let exclusive = setup.pools.exclusive(&state.database, setup.turn).await;
    let (_turn, mut session) =
        exclusive.map_err(|error| problems::of_postgres(error, problems::During::Apply))?;
    let options = Options {
        lock_wait: setup.turn,
        ..Options::default()
    };
    engine(&mut session, &state.desired, &options)
        .await
        .map_err(problems::of_apply)?;
    Ok(())
}
