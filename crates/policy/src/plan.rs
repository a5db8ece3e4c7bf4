//! Decides what to do. Pure: the engine compares, and the existing plans determine the rest.

use stanchion_kernel::Problem;
use stanchion_roles::diff::{self, diff};
use stanchion_roles::plan::Plan as Changes;

use crate::observe::{Contested, Observed, Seen, slow};
use crate::plans::{Course, Question, course};
use crate::problems;
use crate::target::{Target, Wanted};

/// How many overlaps are named; the rest is counted.
const NAMED: usize = 5;

/// The decision.
pub enum Plan {
    /// Do nothing.
    Nothing,
    /// Changes, and what happens to them.
    Follow(Box<Decided>),
    /// Revoke what the policy granted.
    TakeBack,
}

/// Changes, and what happens to them.
pub struct Decided {
    /// The differences between the database and the spec.
    pub changes: Changes,
    /// What happens to the plans.
    pub course: Course,
    /// Options of the comparison.
    pub options: diff::Options,
}

/// Decides what to do.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    match (target, observed) {
        (Target::Present(wanted), Observed::Contested(contested)) => Err(slow(conflict(contested), wanted)),
        (Target::Present(wanted), Observed::Seen(seen)) => {
            decide(wanted, seen).map_err(|problem| slow(problem, wanted))
        }
        (_, Observed::Leaving(_)) => Ok(Plan::TakeBack),
        _ => Ok(Plan::Nothing),
    }
}

fn conflict(contested: &Contested) -> Problem {
    let rivals: Vec<_> = contested
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
    let ours = &contested.namespace;
    let among_ourselves = contested
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
}

fn decide(wanted: &Wanted, seen: &Seen) -> Result<Plan, Problem> {
    let options = options(wanted, seen);
    let changes = diff(&seen.content.desired, &seen.facts, &options)
        .map_err(|error| Problem::permanent("InvalidDatabaseTarget", error.to_string()))?;
    // A policy that only observes reports blockers, and does not fail because of them.
    if wanted.mode.applies() && !changes.blockers.is_empty() {
        return Err(problems::blocked(&changes));
    }
    let digest = (!changes.is_empty()).then(|| changes.digest());
    let course = course(&Question {
        plans: &seen.plans,
        digest: digest.as_deref(),
        identity: &seen.identity.to_string(),
        applies: wanted.mode.applies(),
        needs_approval: wanted.needs_approval,
        history: wanted.history,
    });
    Ok(Plan::Follow(Box::new(Decided {
        changes,
        course,
        options,
    })))
}

fn options(wanted: &Wanted, seen: &Seen) -> diff::Options {
    diff::Options {
        mode: wanted.reach,
        allow_schema_owner_transfers: wanted.spec.allow_schema_owner_transfers,
        passwords: seen.passwords.for_engine(&seen.facts),
    }
}
