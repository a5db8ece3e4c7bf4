//! Decides what to do. Pure: the engine compares, and the existing plans determine the rest.

use stanchion_kernel::Problem;
use stanchion_kernel::problem::Cause;
use stanchion_roles::diff::{self, diff};
use stanchion_roles::plan::Plan as Changes;

use crate::plans::{LifecycleInputs, Transitions, transitions};
use crate::policy::observe::{Conflicting, Current, Observed, retry_at_interval};
use crate::policy::target::{Target, Wanted};
use crate::problems;

/// How many overlaps are named; the rest is counted.
const NAMED: usize = 5;

/// The decision.
pub enum Plan {
    /// Do nothing.
    Nothing,
    /// Changes, and what happens to them.
    Ensure(Box<EnsurePlan>),
    /// Revoke what the policy granted.
    Cleanup,
}

/// Changes, and what happens to them.
pub struct EnsurePlan {
    /// The differences between the database and the spec.
    pub changes: Changes,
    /// What happens to the plans.
    pub transitions: Transitions,
    /// Options of the comparison.
    pub options: diff::Options,
}

/// Decides what to do.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    match (target, observed) {
        (Target::Ensure(wanted), Observed::Conflicting(conflicting)) => {
            Err(retry_at_interval(conflict(conflicting), wanted))
        }
        (Target::Ensure(wanted), Observed::Ensure(current)) => {
            decide(wanted, current).map_err(|problem| retry_at_interval(problem, wanted))
        }
        (_, Observed::Cleanup(_)) => Ok(Plan::Cleanup),
        _ => Ok(Plan::Nothing),
    }
}

fn conflict(conflicting: &Conflicting) -> Problem {
    let rivals: Vec<_> = conflicting
        .rivals
        .iter()
        .map(|rival| {
            let named: Vec<_> = rival.over.iter().take(NAMED).map(String::as_str).collect();
            let more = rival.over.len().saturating_sub(NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let (namespace, name) = (&rival.who.key.namespace, &rival.who.key.name);
            format!("{namespace}/{name} also declares {}{more}", named.join(", "))
        })
        .collect();
    let ours = &conflicting.namespace;
    let among_ourselves = conflicting
        .rivals
        .iter()
        .any(|rival| rival.who.key.namespace == *ours);
    let consequence = if among_ourselves {
        "neither is applied until only one does"
    } else {
        "the older one takes precedence, and this one waits for it"
    };
    Problem::human(
        problems::CONFLICT,
        format!("policy {}; {consequence}", rivals.join("; policy ")),
    )
    .with_cause(Cause::Overlap)
}

fn decide(wanted: &Wanted, current: &Current) -> Result<Plan, Problem> {
    let options = options(wanted, current);
    let changes = diff(&current.content.desired, &current.facts, &options)
        .map_err(|error| Problem::permanent("InvalidDatabaseTarget", error.to_string()))?;
    // A policy that only observes reports blockers, and does not fail because of them.
    if wanted.mode.applies() && !changes.blockers.is_empty() {
        return Err(problems::blocked(&changes));
    }
    let digest = (!changes.is_empty()).then(|| changes.digest());
    let transitions = transitions(&LifecycleInputs {
        plans: &current.plans,
        digest: digest.as_deref(),
        identity: &current.identity.to_string(),
        applies: wanted.mode.applies(),
        needs_approval: wanted.needs_approval,
        history: wanted.history,
    });
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        changes,
        transitions,
        options,
    })))
}

fn options(wanted: &Wanted, current: &Current) -> diff::Options {
    diff::Options {
        mode: wanted.reach,
        allow_schema_owner_transfers: wanted.spec.allow_schema_owner_transfers,
        passwords: current.passwords.for_engine(&current.facts),
    }
}
