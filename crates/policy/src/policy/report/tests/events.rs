//! Events, and that each is sent once.

use stanchion_kernel::events::Severity;
use stanchion_kernel::watch::dependencies::Key;

use super::*;
use crate::policy::apply::PlanEvent;
use crate::policy::target::PolicyId;

#[test]
fn a_policy_that_only_observes_reports_drift_and_its_end() {
    let spec = json!({ "mode": "plan" });
    let drift = pass(&policy(&spec, None), found(PlanOutcome::Observed, 2), 0);
    assert_eq!(condition(&drift, "Ready"), Some(("True", "Planned")));
    assert_eq!(condition(&drift, "Drifted"), Some(("True", "DriftDetected")));
    assert_eq!(message(&drift, "Drifted"), "2 change(s) are needed");
    assert_eq!(drift.status.planned_sql.as_deref(), Some("CREATE ROLE \"app\";"));
    assert_eq!(events(&drift), ["DriftDetected", "Reconciled"]);
    let clean = pass(&later(&spec, drift), found(PlanOutcome::InSync, 0), 30);
    assert_eq!(condition(&clean, "Drifted"), Some(("False", "InSync")));
    assert_eq!(clean.status.planned_sql, None);
    assert_eq!(clean.status.change_summary.unwrap().total, 0);
    assert_eq!(events(&clean), ["PlanClean"]);
}

#[test]
fn a_failure_is_counted_and_reported_once() {
    let away = Problem::transient("DatabaseConnectionFailed", "no answer");
    let first = problem(&policy(&json!({}), None), &away);
    assert_eq!(
        condition(&first, "Ready"),
        Some(("False", "DatabaseConnectionFailed"))
    );
    assert_eq!(
        condition(&first, "Degraded"),
        Some(("True", "DatabaseConnectionFailed"))
    );
    assert_eq!(first.status.last_error.as_deref(), Some("no answer"));
    assert_eq!(first.status.transient_failure_count, 1);
    assert_eq!(events(&first), ["DatabaseConnectionFailed"]);
    assert_eq!(first.events[0].kind, Severity::Warning);

    let second = problem(&later(&json!({}), first), &away);
    assert_eq!(second.status.transient_failure_count, 2);
    assert!(second.events.is_empty(), "sent once");

    let weak = Problem::human("InsufficientPrivileges", "no CREATEROLE");
    let third = problem(&later(&json!({}), second), &weak);
    assert_eq!(third.status.transient_failure_count, 0);
    assert_eq!(
        events(&third),
        ["InsufficientPrivileges"],
        "another reason is news"
    );

    let well = pass(&later(&json!({}), third), found(PlanOutcome::Applied, 1), 90);
    assert_eq!(
        (well.status.last_error.clone(), events(&well)),
        (None, vec!["Recovered"])
    );
    assert_eq!(condition(&well, "Degraded"), Some(("False", "Reconciled")));
}

#[test]
fn a_refused_drop_has_the_originals_event() {
    let report = problem(
        &policy(&json!({}), None),
        &Problem::human(problems::UNSAFE_DROPS, "app owns a table").with_cause(Cause::UnsafeDrop),
    );
    assert_eq!(condition(&report, "Ready"), Some(("False", "UnsafeRoleDrops")));
    assert_eq!(events(&report), ["UnsafeRoleDropsBlocked"]);
}

#[test]
fn a_conflict_and_its_end_are_reported() {
    let rival = Rival {
        who: PolicyId {
            key: Key {
                namespace: "ns".into(),
                name: "other".into(),
            },
            uid: "v".into(),
        },
        over: vec!["role \"app\"".into()],
    };
    let conflict = Problem::human(problems::CONFLICT, "policy ns/other also declares role \"app\"")
        .with_cause(Cause::Overlap);
    let first = passed(
        &policy(&json!({}), None),
        &Applied::default(),
        Some(&conflict),
        &[rival],
        0,
    );
    assert_eq!(condition(&first, "Conflict"), Some(("True", "ConflictingPolicy")));
    assert_eq!(condition(&first, "Ready"), Some(("False", "ConflictingPolicy")));
    assert!(message(&first, "Conflict").contains("ns/other"));
    assert_eq!(first.status.owned_roles, ["app"], "what it claims is seen");
    assert_eq!(events(&first), ["ConflictDetected"], "one event, not two");
    let over = pass(&later(&json!({}), first), found(PlanOutcome::InSync, 0), 30);
    assert_eq!(condition(&over, "Conflict"), Some(("False", "NoConflict")));
    assert_eq!(events(&over), ["ConflictResolved", "Recovered"]);
}

#[test]
fn a_pause_has_a_beginning_and_an_end() {
    let first = pass(&policy(&json!({}), None), found(PlanOutcome::Applied, 1), 0);
    let paused = unseen(&later(&json!({ "suspend": true }), first));
    assert_eq!(condition(&paused, "Paused"), Some(("True", "Suspended")));
    assert_eq!(condition(&paused, "Ready"), Some(("False", "Suspended")));
    assert_eq!((paused.idle_reason, paused.requeue_after), ("Suspended", None));
    assert_eq!(events(&paused), ["Suspended"]);
    let resumed = pass(&later(&json!({}), paused), found(PlanOutcome::InSync, 0), 90);
    assert_eq!(condition(&resumed, "Paused"), Some(("False", "Active")));
    assert_eq!(events(&resumed), ["Resumed", "Reconciled"]);
}

#[test]
fn plan_events_are_reported_in_order() {
    let plan = || "shop-plan-1".to_owned();
    let plan_events = vec![
        PlanEvent::Created(plan()),
        PlanEvent::Approved(plan(), "alice".to_owned()),
        PlanEvent::Started(plan()),
        PlanEvent::Succeeded(plan(), 3),
        PlanEvent::Rejected(plan(), "bob".to_owned()),
        PlanEvent::Failed(plan(), "no right".to_owned()),
    ];
    let applied = Applied {
        result: Some(found(PlanOutcome::Applied, 3)),
        plan_events,
        rivals: Vec::new(),
    };
    let report = passed(&policy(&json!({}), None), &applied, None, &[], 0);
    assert_eq!(
        events(&report),
        [
            "PlanCreated",
            "PlanApproved",
            "ApplyStarted",
            "ApplySucceeded",
            "PlanRejected",
            "ApplyFailed",
            "Reconciled"
        ]
    );
    let notes: Vec<_> = report.events.iter().map(|event| event.note.as_str()).collect();
    assert!(
        notes[1].contains("by alice") && notes[3].contains("3 change(s)") && notes[5].contains("no right")
    );
}
