//! Applies changes: plans are written before they are executed, and again afterwards.
//!
//! | file | subject |
//! |---|---|
//! | `advance` | applies a decision to the existing plans |
//! | `execute` | executes a plan and records the result |
//! | `record_decision` | records a person's decision |

mod advance;
mod execute;
mod record_decision;

use std::collections::BTreeMap;

use stanchion_api::PostgresPolicy;
use stanchion_api::policy::ChangeSummary;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Done, Problem, Writer};

use self::advance::Pass;
use crate::claims::{Claim, Rival};
use crate::policy::PolicyController;
use crate::policy::observe::retry_at_interval;
use crate::policy::plan::{ClaimPlan, Next, Plan};
use crate::policy::target::Wanted;
use crate::problems;

/// The result of the apply step.
#[derive(Default)]
pub struct Applied {
    /// The comparison and its result; `None` if the reconcile did not come that far.
    pub result: Option<PassResult>,
    /// Events of plans, in order.
    pub plan_events: Vec<PlanEvent>,
    /// Policies that claimed the same while this one was observed.
    pub rivals: Vec<Rival>,
}

/// The comparison and its result.
pub struct PassResult {
    /// The number of differences by kind.
    pub summary: ChangeSummary,
    /// The differences as SQL, if they were not applied, and whether the text is truncated.
    pub sql: Option<(String, bool)>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// What the roles of the policy hold that it does not manage.
    pub holdings: Vec<String>,
    pub plan: Option<String>,
    pub outcome: PlanOutcome,
    /// Whether an existing plan was applied in this database.
    pub was_applied: bool,
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
pub(crate) async fn apply(
    controller: &PolicyController,
    write: &Writer,
    wanted: &Wanted,
    plan: Plan,
    applied: &mut Applied,
) -> Result<Done, Problem> {
    let forget = || controller.converged.forget(&wanted.who.key);
    let ClaimPlan { claim, stale, next } = match plan {
        Plan::Unchanged => return Ok(Done::Complete),
        Plan::Failed(problem) => {
            forget();
            return Err(problem);
        }
        Plan::Claim(plan) => {
            forget();
            *plan
        }
    };
    let rivals = set(controller, write, &wanted.who.key, claim, &stale);
    match next {
        Next::Failed(problem) => Err(problem),
        Next::Conflict(problem) => Ok(Done::Blocked(problem)),
        // Another policy claimed the same while this one read.
        Next::Ensure(_) if !rivals.is_empty() => {
            let problem = problems::conflict(&wanted.who.key.namespace, &rivals);
            applied.rivals = rivals;
            Ok(Done::Blocked(retry_at_interval(problem, wanted)))
        }
        Next::Ensure(ensure) => {
            let pass = Pass {
                controller,
                write,
                wanted,
                current: &ensure.current,
                passwords: &ensure.passwords,
            };
            let advanced = pass.advance(&ensure.changes, ensure.transitions, ensure.options, applied);
            Box::pin(advanced)
                .await
                .map_err(|problem| retry_at_interval(problem, wanted))?;
            Ok(Done::Complete)
        }
    }
}

/// Sets the policy's claim, enqueues the affected policies, and returns those that block this one.
fn set(
    controller: &PolicyController,
    write: &Writer,
    policy: &Key,
    claim: Claim,
    stale: &[Key],
) -> Vec<Rival> {
    let claims = &controller.setup.claims;
    for gone in stale {
        claims.release(gone);
    }
    let (rivals, affected) = claims.claim(policy, claim);
    for other in &affected {
        write.wake::<PostgresPolicy>(other);
    }
    rivals
}
