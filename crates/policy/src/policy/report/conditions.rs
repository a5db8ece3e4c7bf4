//! Sets the conditions that depend on one thing each.

use stanchion_api::policy::condition;
use stanchion_kernel::condition::{Conditions, Truth};

use super::Known;
use crate::policy::apply::{PassResult, PlanOutcome};
use crate::policy::target::Wanted;
use crate::problems;

/// How many privileges and memberships that the policy does not manage are named in its status.
const SHOWN_HOLDINGS: usize = 5;

pub(super) fn drifted(conditions: &mut Conditions, result: &PassResult) {
    match result.outcome {
        PlanOutcome::InSync | PlanOutcome::Applied => {
            conditions.set(condition::DRIFTED, Truth::False, "InSync", "");
        }
        _ => {
            let message = format!("{} change(s) are needed", result.summary.total);
            conditions.set(condition::DRIFTED, Truth::True, "DriftDetected", &message);
        }
    }
}

/// What the roles hold beyond the policy stays: a policy manages only what it names, and what it no longer names is no
/// exception.
pub(super) fn unmanaged(conditions: &mut Conditions, result: &PassResult) {
    if result.holdings.is_empty() {
        conditions.clear(condition::UNMANAGED);
        return;
    }
    let message = problems::first(&result.holdings, SHOWN_HOLDINGS, "; ");
    let message = format!("{message}. They stay, unless the role is exclusive: true");
    conditions.set(condition::UNMANAGED, Truth::True, "HeldElsewhere", &message);
}

/// Whether the server's identity was verified, and whether its log can be kept clean.
pub(super) fn connected(conditions: &mut Conditions, known: &Known<'_>) {
    let (reason, message) = match (known.security.verified, known.security.encrypted) {
        (true, _) => ("Verified", "the server's identity is verified"),
        (false, true) => (
            "NotVerified",
            "the connection is encrypted, but the server is not verified: use sslmode=verify-full and the server's CA",
        ),
        (false, false) => (
            "NotVerified",
            "the connection is not encrypted, and the server is not verified: use sslmode=verify-full and the server's CA",
        ),
    };
    let mut message = message.to_owned();
    for warning in known.warnings {
        message = format!("{message}; {warning}");
    }
    conditions.set(condition::CONNECTED, Truth::True, reason, &message);
}

pub(super) fn uncontested(conditions: &mut Conditions) {
    conditions.set(condition::CONFLICT, Truth::False, "NoConflict", "");
}

pub(super) fn resumed(conditions: &mut Conditions) {
    conditions.set(condition::PAUSED, Truth::False, "Active", "");
}

pub(super) fn password_in_spec(conditions: &mut Conditions, wanted: &Wanted) {
    if wanted.connection.exposes_password {
        let message =
            "everyone who can read the policy can read connection.params.password; use passwordSecret";
        conditions.set(
            condition::PASSWORD_IN_SPEC,
            Truth::True,
            "LiteralPassword",
            message,
        );
    } else {
        conditions.clear(condition::PASSWORD_IN_SPEC);
    }
}
