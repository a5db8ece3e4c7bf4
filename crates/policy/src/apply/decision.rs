//! What is noted of a decision that a person made.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus};

use super::{Applied, Happening};
use crate::plans::Decision;

/// Writes a decision into a status, once.
pub(super) fn decide(
    status: &mut PostgresPolicyPlanStatus,
    name: &str,
    decision: &Decision,
    applied: &mut Applied,
) {
    let (kind, who, phase) = match decision {
        Decision::Approved(who) => ("Approved", who, PlanPhase::Approved),
        Decision::Rejected(who) => ("Denied", who, PlanPhase::Rejected),
    };
    let before = status.phase;
    if !matches!(status.phase, PlanPhase::Failed | PlanPhase::Applying) || phase == PlanPhase::Rejected {
        status.phase = phase;
    }
    let is_noted = |condition: &Condition| condition.type_ == kind && condition.status == "True";
    let noted = status.decided_by.is_some() && status.conditions.iter().any(is_noted);
    if noted && status.phase == before {
        return;
    }
    let username = &who.username;
    if !noted {
        status.decided_by.get_or_insert_with(|| who.clone());
        let others = |condition: &Condition| !["Approved", "Denied"].contains(&condition.type_.as_str());
        status.conditions.retain(others);
        status.conditions.push(Condition {
            type_: kind.into(),
            status: "True".into(),
            reason: "Decided".into(),
            message: format!("by {username}"),
            observed_generation: None,
            last_transition_time: Time(Timestamp::now()),
        });
    }
    applied.happened.push(match decision {
        Decision::Approved(_) => Happening::Approved(name.into(), username.clone()),
        Decision::Rejected(_) => Happening::Rejected(name.into(), username.clone()),
    });
}
