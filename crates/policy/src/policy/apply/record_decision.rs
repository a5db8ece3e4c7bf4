//! Records a person's decision about a plan.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus};

use super::{Applied, PlanEvent};
use crate::plans::Decision;

/// Writes a decision into a status, once.
pub(super) fn decide(
    status: &mut PostgresPolicyPlanStatus,
    name: &str,
    decision: &Decision,
    now: Timestamp,
    applied: &mut Applied,
) {
    let (kind, author, phase) = match decision {
        Decision::Approved(author) => ("Approved", author, PlanPhase::Approved),
        Decision::Rejected(author) => ("Denied", author, PlanPhase::Rejected),
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
    let username = &author.who.username;
    let message = if author.chosen {
        format!("by {username}, the field manager of the annotation: a name that the client chose")
    } else {
        format!("by {username}")
    };
    if !noted {
        status.decided_by.get_or_insert_with(|| author.who.clone());
        let others = |condition: &Condition| !["Approved", "Denied"].contains(&condition.type_.as_str());
        status.conditions.retain(others);
        status.conditions.push(Condition {
            type_: kind.into(),
            status: "True".into(),
            reason: "Decided".into(),
            message,
            observed_generation: None,
            last_transition_time: Time(now),
        });
    }
    applied.plan_events.push(match decision {
        Decision::Approved(_) => PlanEvent::Approved(name.into(), username.clone()),
        Decision::Rejected(_) => PlanEvent::Rejected(name.into(), username.clone()),
    });
}

#[cfg(test)]
mod tests {
    use stanchion_api::policy::Decider;

    use super::*;
    use crate::plans::Author;

    fn alice() -> Author {
        let who = Decider {
            username: "alice".into(),
            ..Decider::default()
        };
        Author { who, chosen: false }
    }

    fn decided(phase: PlanPhase, decision: &Decision) -> (PostgresPolicyPlanStatus, Applied) {
        let mut status = PostgresPolicyPlanStatus {
            phase,
            ..PostgresPolicyPlanStatus::default()
        };
        let mut applied = Applied::default();
        decide(&mut status, "p", decision, Timestamp::UNIX_EPOCH, &mut applied);
        (status, applied)
    }

    #[test]
    fn a_decision_is_recorded_once_with_its_author() {
        let yes = Decision::Approved(alice());
        let (mut status, mut applied) = decided(PlanPhase::Pending, &yes);
        assert_eq!(status.phase, PlanPhase::Approved);
        assert_eq!(status.decided_by, Some(alice().who));
        assert_eq!(status.conditions[0].message, "by alice");
        assert_eq!(status.conditions[0].type_, "Approved");
        assert_eq!(
            applied.plan_events,
            [PlanEvent::Approved("p".into(), "alice".into())]
        );
        let before = status.clone();
        decide(&mut status, "p", &yes, Timestamp::UNIX_EPOCH, &mut applied);
        assert_eq!((status, applied.plan_events.len()), (before, 1));
    }

    /// F24: a name that anybody can choose does not look like one that the API server has authenticated.
    #[test]
    fn a_name_chosen_by_the_client_is_reported_as_such() {
        let author = Author {
            chosen: true,
            ..alice()
        };
        let (status, _) = decided(PlanPhase::Pending, &Decision::Approved(author));
        let message = &status.conditions[0].message;
        assert!(message.contains("the field manager"), "{message}");
    }

    #[test]
    fn a_no_ends_a_plan_that_a_yes_leaves_on_its_way() {
        let (yes, no) = (Decision::Approved(alice()), Decision::Rejected(alice()));
        for phase in [PlanPhase::Failed, PlanPhase::Applying] {
            assert_eq!(decided(phase, &yes).0.phase, phase);
            assert_eq!(decided(phase, &no).0.phase, PlanPhase::Rejected);
        }
    }

    #[test]
    fn a_no_takes_the_place_of_a_yes() {
        let (mut status, mut applied) = decided(PlanPhase::Pending, &Decision::Approved(alice()));
        decide(
            &mut status,
            "p",
            &Decision::Rejected(alice()),
            Timestamp::UNIX_EPOCH,
            &mut applied,
        );
        let kinds: Vec<_> = status.conditions.iter().map(|it| it.type_.as_str()).collect();
        assert_eq!(kinds, ["Denied"]);
        assert_eq!(status.phase, PlanPhase::Rejected);
    }
}
