//! Decides what to do. Pure: the engine compares, and the existing plans determine the rest.

use std::sync::Arc;

use rand::CryptoRng;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Inputs, Problem};
use stanchion_roles::apply::aside;
use stanchion_roles::diff::{self, diff};
use stanchion_roles::plan::Plan as Changes;

use crate::claims::Claim;
use crate::passwords::{self, Passwords};
use crate::plans::{LifecycleInputs, Transitions, transitions};
use crate::policy::observe::{Connected, Current, Found, Observed, retry_at_interval};
use crate::policy::target::Wanted;
use crate::problems;

/// The decision.
pub enum Plan {
    /// Nothing has changed since the last reconcile.
    Unchanged,
    /// Nothing can be done.
    Failed(Problem),
    /// Claim what the policy declares, and then go on.
    Claim(Box<ClaimPlan>),
}

/// The claim, and what follows.
pub struct ClaimPlan {
    pub claim: Claim,
    /// Policies whose claims end, because they no longer exist.
    pub stale: Vec<Key>,
    /// What follows.
    pub next: Next,
}

/// What follows a claim.
pub enum Next {
    /// Make the changes.
    Ensure(Box<EnsurePlan>),
    /// Another policy declares the same.
    Conflict(Problem),
    /// Something could not be read or decided. The claim holds all the same: others must not take what it is about.
    Failed(Problem),
}

/// Changes, and what happens to them.
pub struct EnsurePlan {
    /// What was observed.
    pub current: Arc<Current>,
    /// The differences between the database and the spec.
    pub changes: Changes,
    /// What happens to the plans.
    pub transitions: Transitions,
    /// Options of the comparison.
    pub options: diff::Options,
    /// The desired passwords.
    pub passwords: Passwords,
}

/// Decides what to do.
pub(crate) fn plan(wanted: &Wanted, observed: &Observed, inputs: &mut Inputs<'_>) -> Plan {
    match observed {
        Observed::Unchanged => Plan::Unchanged,
        Observed::Failed(problem) => Plan::Failed(retry_at_interval(problem.clone(), wanted)),
        Observed::Connected(connected) => {
            let Connected { claim, stale, found } = connected.as_ref();
            Plan::Claim(Box::new(ClaimPlan {
                claim: claim.clone(),
                stale: stale.clone(),
                next: next(wanted, found, inputs),
            }))
        }
    }
}

fn next(wanted: &Wanted, found: &Found, inputs: &mut Inputs<'_>) -> Next {
    let paced = |problem| retry_at_interval(problem, wanted);
    match found {
        Found::Conflict(conflicting) => Next::Conflict(paced(problems::conflict(
            &wanted.who.key.namespace,
            &conflicting.rivals,
        ))),
        Found::Failed(problem) => Next::Failed(paced(problem.clone())),
        // Passwords are compared by computing their verifiers, and a database can have many objects.
        Found::Database(current) => match aside(|| ensure(wanted, current, inputs.random)) {
            Ok(plan) => Next::Ensure(Box::new(plan)),
            Err(problem) => Next::Failed(paced(problem)),
        },
    }
}

fn ensure(
    wanted: &Wanted,
    current: &Arc<Current>,
    random: &mut dyn CryptoRng,
) -> Result<EnsurePlan, Problem> {
    let passwords = passwords::decide(
        &current.passwords,
        &current.parent,
        &current.fingerprints,
        &wanted.before.applied_password_source_versions,
        random,
    )?;
    let options = diff::Options {
        mode: wanted.reach,
        allow_schema_owner_transfers: wanted.spec.allow_schema_owner_transfers,
        passwords: passwords.for_engine(&current.facts, random),
    };
    let changes = diff(&current.content.desired, &current.facts, &options)
        .map_err(|error| Problem::permanent("InvalidDatabaseTarget", error.to_string()))?;
    // A policy that only observes reports blockers, and does not fail because of them.
    if wanted.mode.applies() && !changes.blockers.is_empty() {
        return Err(problems::blocked(&changes));
    }
    let digest = (!changes.is_empty()).then(|| changes.digest());
    let mut transitions = transitions(&LifecycleInputs {
        plans: &current.plans,
        digest: digest.as_deref(),
        identity: &current.identity.to_string(),
        applies: wanted.mode.applies(),
        needs_approval: wanted.needs_approval,
        history: wanted.history,
    });
    transitions.next = transitions.next.proven(&current.fingerprints);
    Ok(EnsurePlan {
        current: Arc::clone(current),
        changes,
        transitions,
        options,
        passwords,
    })
}
