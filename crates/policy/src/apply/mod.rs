//! Doing it: plans are written before what they say is done, and again after it.
//!
//! | file | subject |
//! |---|---|
//! | `follow` | what a decision means for the plans that there are |
//! | `execute` | carrying a plan out, and what is said in it about how that went |
//! | `decision` | what is noted of a decision that a person made |

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

/// What was done.
#[derive(Default)]
pub struct Applied {
    /// What was found and what came of it; `None` when no pass came so far.
    pub told: Option<Told>,
    /// What happened to plans, in order.
    pub happened: Vec<Happening>,
}

/// What was found, and what came of it.
pub struct Told {
    /// What separates the database from what is declared, in numbers.
    pub summary: ChangeSummary,
    /// The same as SQL, where it was not carried out, and whether it is only the beginning.
    pub sql: Option<(String, bool)>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// The plan.
    pub plan: Option<String>,
    /// What came of it.
    pub end: End,
    /// The marks of the passwords that are set now.
    pub marks: Option<BTreeMap<String, String>>,
}

/// What came of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There was nothing to do.
    InSync,
    /// It was carried out.
    Applied,
    /// It waits for somebody.
    Waiting,
    /// Somebody said no.
    Rejected,
    /// The policy only looks.
    Observed,
}

/// Something that happened to a plan.
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

/// Does it.
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
