//! Decides what happens to the existing plans, given the changes that the database needs now. Pure.
//!
//! A plan is identified by the digest of its changes, not by its time or salt. So an interrupted plan is continued, a
//! failed one is retried, and one that is no longer needed is superseded.

use kube::ResourceExt;
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus, annotation};

use super::age;
use super::decision::{Decision, decision};
use stanchion_kernel::redact::FingerprintKey;

/// The input of the decision.
pub(crate) struct LifecycleInputs<'a> {
    /// The existing plans.
    pub plans: &'a [PostgresPolicyPlan],
    /// Digest of the required changes; `None` if there are none.
    pub digest: Option<&'a str>,
    /// The database.
    pub identity: &'a str,
    /// Whether plans are executed at all.
    pub applies: bool,
    /// Whether a plan needs approval.
    pub needs_approval: bool,
    /// How many finished plans are kept.
    pub history: usize,
}

/// The decision about all plans.
#[derive(Debug)]
pub struct Transitions {
    /// What happens to the current plan.
    pub next: NextAction,
    /// Plans that end now.
    pub closing: Vec<(PostgresPolicyPlan, PostgresPolicyPlanStatus)>,
    /// Plans beyond the history limit.
    pub pruned: Vec<PostgresPolicyPlan>,
}

/// What happens to the current plan. `None` means that its object does not exist yet.
#[derive(Debug)]
pub enum NextAction {
    /// There is no plan, because there are no changes.
    InSync,
    /// It waits; an approval is recorded in it.
    Wait(Option<Box<PostgresPolicyPlan>>, Option<Decision>),
    Rejected(Box<PostgresPolicyPlan>, Decision),
    /// It is executed.
    Execute(Option<Box<PostgresPolicyPlan>>, Option<Decision>),
}

impl NextAction {
    /// The same with the authenticated author of the decision, where the plan names one.
    #[must_use]
    pub(crate) fn proven(self, key: &FingerprintKey) -> Self {
        let prove = |plan: Option<&PostgresPolicyPlan>, decision: Option<Decision>| match plan {
            Some(plan) => decision.map(|decision| decision.proven(key, plan)),
            None => decision,
        };
        match self {
            Self::InSync => Self::InSync,
            Self::Wait(plan, decision) => {
                let decision = prove(plan.as_deref(), decision);
                Self::Wait(plan, decision)
            }
            Self::Rejected(plan, decision) => {
                let decision = decision.proven(key, &plan);
                Self::Rejected(plan, decision)
            }
            Self::Execute(plan, decision) => {
                let decision = prove(plan.as_deref(), decision);
                Self::Execute(plan, decision)
            }
        }
    }
}

/// Decides about all plans.
pub(crate) fn transitions(inputs: &LifecycleInputs<'_>) -> Transitions {
    let mut plans: Vec<&PostgresPolicyPlan> = inputs.plans.iter().collect();
    plans.sort_by_key(|plan| std::cmp::Reverse(age(plan)));
    let present = inputs
        .digest
        .and_then(|digest| present(&plans, digest, inputs.identity));
    let is_present =
        |plan: &PostgresPolicyPlan| present.is_some_and(|present| present.name_any() == plan.name_any());
    let closing: Vec<_> = plans
        .iter()
        .filter(|plan| !is_present(plan))
        .filter_map(|plan| Some(((*plan).clone(), closed(plan, inputs.digest.is_none())?)))
        .collect();
    let ended = plans
        .iter()
        .filter(|plan| phase(plan).is_ended() && !is_present(plan));
    let room = inputs.history.saturating_sub(closing.len());
    Transitions {
        next: next(inputs, present),
        pruned: ended.skip(room).map(|plan| (*plan).clone()).collect(),
        closing,
    }
}

fn phase(plan: &PostgresPolicyPlan) -> PlanPhase {
    plan.status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

/// The digest of a plan. Its first writer may have been killed before it wrote the status.
fn digest_of(plan: &PostgresPolicyPlan) -> Option<&str> {
    let noted = plan
        .status
        .as_ref()
        .and_then(|status| status.change_digest.as_ref());
    noted
        .or_else(|| plan.annotations().get(annotation::SQL_HASH))
        .map(String::as_str)
}

/// The plan for the required changes: an open one, or the last one if it failed or was rejected. An executed one does
/// not count, because the same changes are needed again.
fn present<'a>(
    plans: &[&'a PostgresPolicyPlan],
    digest: &str,
    identity: &str,
) -> Option<&'a PostgresPolicyPlan> {
    let same = |plan: &&&PostgresPolicyPlan| {
        plan.spec.managed_database_identity == identity && digest_of(plan) == Some(digest)
    };
    let open = plans.iter().filter(same).find(|plan| !phase(plan).is_ended());
    let last = || {
        plans
            .first()
            .filter(same)
            .filter(|plan| matches!(phase(plan), PlanPhase::Failed | PlanPhase::Rejected))
    };
    open.or_else(last).copied()
}

/// How an open plan ends if it is not the current one.
fn closed(plan: &PostgresPolicyPlan, in_sync: bool) -> Option<PostgresPolicyPlanStatus> {
    let status = plan.status.clone().unwrap_or_default();
    let (phase, error) = match status.phase {
        // The process was killed after the transaction: the plan was executed, but that was not recorded.
        PlanPhase::Applying if in_sync => (PlanPhase::Applied, None),
        PlanPhase::Applying => (
            PlanPhase::Failed,
            Some("interrupted; the database needs something else by now".to_owned()),
        ),
        PlanPhase::Pending | PlanPhase::Approved => (PlanPhase::Superseded, None),
        _ => return None,
    };
    Some(PostgresPolicyPlanStatus {
        phase,
        last_error: error,
        ..status
    })
}

fn next(inputs: &LifecycleInputs<'_>, present: Option<&PostgresPolicyPlan>) -> NextAction {
    if inputs.digest.is_none() {
        return NextAction::InSync;
    }
    let decided = present.and_then(decision);
    let boxed = present.cloned().map(Box::new);
    match (boxed, decided) {
        (Some(plan), Some(rejected @ Decision::Rejected(_))) => NextAction::Rejected(plan, rejected),
        (plan, decided) if !inputs.applies => NextAction::Wait(plan, decided),
        (plan, decided) if !inputs.needs_approval || decided.is_some() => NextAction::Execute(plan, decided),
        (plan, None) => NextAction::Wait(plan, None),
        (plan, decided) => NextAction::Execute(plan, decided),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(name: &str, second: u32, phase: &str, digest: &str, approved: bool) -> PostgresPolicyPlan {
        let annotations = if approved {
            json!({ "pgroles.io/approved": "true" })
        } else {
            json!({})
        };
        serde_json::from_value(json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicyPlan",
            "metadata": { "name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"), "annotations": annotations },
            "spec": { "policyRef": { "name": "p" }, "policyGeneration": 1, "reconciliationMode": "authoritative",
                      "managedDatabaseIdentity": "1/2" },
            "status": { "phase": phase, "changeDigest": digest },
        }))
        .unwrap()
    }

    fn ask(plans: &[PostgresPolicyPlan], digest: Option<&str>, manual: bool) -> Transitions {
        transitions(&LifecycleInputs {
            plans,
            digest,
            identity: "1/2",
            applies: true,
            needs_approval: manual,
            history: 10,
        })
    }

    fn closing(transitions: &Transitions) -> Vec<(String, PlanPhase)> {
        transitions
            .closing
            .iter()
            .map(|(plan, status)| (plan.name_any(), status.phase))
            .collect()
    }

    #[test]
    fn the_first_plan_is_made_and_waits_only_where_it_should() {
        assert!(matches!(
            ask(&[], Some("d"), false).next,
            NextAction::Execute(None, None)
        ));
        assert!(matches!(
            ask(&[], Some("d"), true).next,
            NextAction::Wait(None, None)
        ));
        assert!(matches!(ask(&[], None, true).next, NextAction::InSync));
    }

    #[test]
    fn a_waiting_plan_is_recognised_and_carried_out_once_approved() {
        let waiting = [plan("a", 1, "Pending", "d", false)];
        assert!(matches!(
            ask(&waiting, Some("d"), true).next,
            NextAction::Wait(Some(_), None)
        ));
        let approved = [plan("a", 1, "Pending", "d", true)];
        let transitions = ask(&approved, Some("d"), true);
        assert!(matches!(
            transitions.next,
            NextAction::Execute(Some(_), Some(Decision::Approved(_)))
        ));
        assert!(transitions.closing.is_empty());
    }

    #[test]
    fn what_is_no_longer_needed_gives_way() {
        let plans = [
            plan("a", 1, "Pending", "old", true),
            plan("b", 2, "Applying", "old", false),
        ];
        let transitions = ask(&plans, Some("new"), true);
        assert!(
            matches!(transitions.next, NextAction::Wait(None, None)),
            "an approval is for one plan"
        );
        assert_eq!(
            closing(&transitions),
            [
                ("b".into(), PlanPhase::Failed),
                ("a".into(), PlanPhase::Superseded)
            ]
        );
    }

    #[test]
    fn an_interrupted_plan_is_finished() {
        let plans = [plan("a", 1, "Applying", "d", false)];
        assert_eq!(
            closing(&ask(&plans, None, false)),
            [("a".into(), PlanPhase::Applied)]
        );
        assert!(matches!(
            ask(&plans, Some("d"), false).next,
            NextAction::Execute(Some(_), _)
        ));
    }

    #[test]
    fn a_failed_plan_is_tried_again_and_an_applied_one_is_made_anew() {
        let failed = [plan("a", 1, "Failed", "d", false)];
        assert!(matches!(
            ask(&failed, Some("d"), false).next,
            NextAction::Execute(Some(_), None)
        ));
        let applied = [plan("a", 1, "Applied", "d", false)];
        assert!(matches!(
            ask(&applied, Some("d"), false).next,
            NextAction::Execute(None, None)
        ));
    }

    #[test]
    fn a_rejected_plan_stays_rejected_until_something_else_is_needed() {
        let mut rejected = plan("a", 1, "Rejected", "d", false);
        rejected
            .annotations_mut()
            .insert("pgroles.io/rejected".into(), "true".into());
        let plans = [rejected];
        assert!(matches!(
            ask(&plans, Some("d"), false).next,
            NextAction::Rejected(..)
        ));
        assert!(matches!(
            ask(&plans, Some("e"), true).next,
            NextAction::Wait(None, None)
        ));
    }

    #[test]
    fn the_oldest_ended_plans_go() {
        let plans: Vec<_> = (0..13)
            .map(|n| plan(&format!("p{n:02}"), n, "Applied", "d", false))
            .collect();
        let transitions = ask(&plans, None, false);
        let names: Vec<_> = transitions.pruned.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["p02", "p01", "p00"]);
    }

    #[test]
    fn a_plan_of_another_database_is_another_plan() {
        let mut other = plan("a", 1, "Pending", "d", true);
        other.spec.managed_database_identity = "9/9".into();
        let transitions = ask(&[other], Some("d"), true);
        assert!(matches!(transitions.next, NextAction::Wait(None, None)));
        assert_eq!(closing(&transitions), [("a".into(), PlanPhase::Superseded)]);
    }
}
