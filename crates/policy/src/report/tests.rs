//! One policy, told of after one pass and the next.

use serde_json::{Value, json};
use stanchion_api::policy::ChangeSummary;
use stanchion_kernel::events::Severity;

use super::*;
use crate::apply::Happening;
use crate::target::Who;
use crate::validate::{content, validate};
use stanchion_kernel::watch::references::Key;

/// A policy with this spec beside its connection and one role, and with the status of an earlier report.
fn policy(spec: &Value, status: Option<PostgresPolicyStatus>) -> PostgresPolicy {
    let mut policy: PostgresPolicy = serde_json::from_value(json!({
        "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy",
        "metadata": { "name": "shop", "namespace": "ns", "uid": "u", "generation": 7 },
        "spec": { "connection": { "secretRef": { "name": "db" } }, "roles": [{ "name": "app" }] },
    }))
    .unwrap();
    let mut whole = serde_json::to_value(&policy.spec).unwrap();
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    policy.spec = serde_json::from_value(whole).unwrap();
    policy.status = status;
    policy
}

/// What an engine found that ended like this.
fn found(end: End, changes: i32) -> Told {
    Told {
        summary: ChangeSummary {
            total: changes,
            ..ChangeSummary::default()
        },
        sql: (changes > 0 && end != End::Applied).then(|| ("CREATE ROLE \"app\";".to_owned(), false)),
        warnings: Vec::new(),
        plan: (changes > 0).then(|| "shop-plan-1".to_owned()),
        end,
        marks: None,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}

/// Reports a pass that reached the database.
fn pass(policy: &PostgresPolicy, told: Told, second: i64) -> Report<PostgresPolicyStatus> {
    let applied = Applied {
        told: Some(told),
        happened: Vec::new(),
    };
    passed(policy, &applied, None, &[], second)
}

/// Reports a pass that ended with a problem after it had reached the database.
fn problem(policy: &PostgresPolicy, problem: &Problem) -> Report<PostgresPolicyStatus> {
    passed(policy, &Applied::default(), Some(problem), &[], 50)
}

fn passed(
    policy: &PostgresPolicy,
    applied: &Applied,
    problem: Option<&Problem>,
    rivals: &[Rival],
    second: i64,
) -> Report<PostgresPolicyStatus> {
    let target = validate(policy).unwrap();
    let content = content(&policy.spec, std::collections::BTreeMap::new()).unwrap();
    let known = Known {
        identity: "4711/5".to_owned(),
        content: &content,
        rivals,
    };
    let passed = Passed {
        target: Some(&target),
        known: Some(known),
        applied,
        problem,
    };
    told(policy, &passed, at(second))
}

/// What is reported of an object that no step got beyond `validate` with.
fn unseen(policy: &PostgresPolicy) -> Report<PostgresPolicyStatus> {
    let target = validate(policy).unwrap();
    let passed = Passed {
        target: Some(&target),
        known: None,
        applied: &Applied::default(),
        problem: None,
    };
    told(policy, &passed, at(60))
}

/// Status and reason.
fn condition<'a>(report: &'a Report<PostgresPolicyStatus>, kind: &str) -> Option<(&'a str, &'a str)> {
    find(&report.status.conditions, kind).map(|it| (it.status.as_str(), it.reason.as_str()))
}

fn events(report: &Report<PostgresPolicyStatus>) -> Vec<&str> {
    report
        .notices
        .iter()
        .map(|notice| notice.reason.as_str())
        .collect()
}

fn message(report: &Report<PostgresPolicyStatus>, kind: &str) -> String {
    find(&report.status.conditions, kind).unwrap().message.clone()
}

/// The same policy one report later.
fn later(spec: &Value, report: Report<PostgresPolicyStatus>) -> PostgresPolicy {
    policy(spec, Some(report.status))
}

#[test]
fn a_first_success_says_everything() {
    let report = pass(&policy(&json!({}), None), found(End::Applied, 1), 0);
    for (kind, expected) in [
        ("Ready", Some(("True", "Reconciled"))),
        ("Degraded", Some(("False", "Reconciled"))),
        ("Drifted", Some(("False", "InSync"))),
        ("Conflict", Some(("False", "NoConflict"))),
        ("Paused", Some(("False", "Active"))),
        ("PasswordInSpec", None),
    ] {
        assert_eq!(condition(&report, kind), expected, "{kind}");
    }
    let status = &report.status;
    assert_eq!(status.managed_database_identity.as_deref(), Some("4711/5"));
    assert_eq!(status.owned_roles, ["app"]);
    assert_eq!(status.change_summary.unwrap().total, 1);
    assert_eq!(status.current_plan_ref.as_ref().unwrap().name, "shop-plan-1");
    assert_eq!(status.last_successful_reconcile_time, Some(at(0)));
    assert_eq!(status.planned_sql, None, "it was carried out");
    assert_eq!(events(&report), ["Reconciled"]);
    assert_eq!(report.again, Some(std::time::Duration::from_mins(5)));
}

/// Nothing of the status moves, not even the time: otherwise it would be written.
#[test]
fn a_second_success_says_nothing_new() {
    let first = pass(&policy(&json!({}), None), found(End::Applied, 1), 0);
    let again = policy(&json!({}), Some(first.status.clone()));
    let second = pass(&again, found(End::InSync, 0), 30);
    assert_eq!(second.status, first.status);
    assert!(second.notices.is_empty());
    let steady = unseen(&again);
    assert_eq!(steady.status, first.status);
    assert_eq!(steady.again, first.again);
}

#[test]
fn a_repair_moves_the_time_and_is_no_news_for_people() {
    let first = pass(&policy(&json!({}), None), found(End::Applied, 1), 0);
    let second = pass(&later(&json!({}), first), found(End::Applied, 4), 30);
    assert_eq!(second.status.last_successful_reconcile_time, Some(at(30)));
    assert_eq!(second.status.change_summary.unwrap().total, 4);
    assert!(second.notices.is_empty());
}

#[test]
fn who_only_looks_is_told_of_drift_and_of_its_end() {
    let spec = json!({ "mode": "plan" });
    let drift = pass(&policy(&spec, None), found(End::Observed, 2), 0);
    assert_eq!(condition(&drift, "Ready"), Some(("True", "Planned")));
    assert_eq!(condition(&drift, "Drifted"), Some(("True", "DriftDetected")));
    assert_eq!(message(&drift, "Drifted"), "2 change(s) are needed");
    assert_eq!(drift.status.planned_sql.as_deref(), Some("CREATE ROLE \"app\";"));
    assert_eq!(events(&drift), ["DriftDetected", "Reconciled"]);
    let clean = pass(&later(&spec, drift), found(End::InSync, 0), 30);
    assert_eq!(condition(&clean, "Drifted"), Some(("False", "InSync")));
    assert_eq!(clean.status.planned_sql, None);
    assert_eq!(clean.status.change_summary.unwrap().total, 0);
    assert_eq!(events(&clean), ["PlanClean"]);
}

#[test]
fn a_plan_that_waits_or_was_refused_is_named() {
    let spec = json!({ "approval": "manual" });
    let waits = pass(&policy(&spec, None), found(End::Waiting, 1), 0);
    assert_eq!(condition(&waits, "Ready"), Some(("True", "Planned")));
    assert!(
        message(&waits, "Ready").contains("annotate plan shop-plan-1 with pgroles.io/approved=true"),
        "{}",
        message(&waits, "Ready")
    );
    let refused = pass(&later(&spec, waits), found(End::Rejected, 1), 1);
    assert!(message(&refused, "Ready").contains("shop-plan-1 was rejected"));
    assert_eq!(condition(&refused, "Drifted"), Some(("True", "DriftDetected")));
}

#[test]
fn a_failure_is_counted_told_once_and_recovered_from() {
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
    assert_eq!(first.notices[0].kind, Severity::Warning);

    let second = problem(&later(&json!({}), first), &away);
    assert_eq!(second.status.transient_failure_count, 2);
    assert!(second.notices.is_empty(), "told once");

    let weak = Problem::human("InsufficientPrivileges", "no CREATEROLE");
    let third = problem(&later(&json!({}), second), &weak);
    assert_eq!(third.status.transient_failure_count, 0);
    assert_eq!(
        events(&third),
        ["InsufficientPrivileges"],
        "another reason is news"
    );

    let well = pass(&later(&json!({}), third), found(End::Applied, 1), 90);
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
        &Problem::human(problems::UNSAFE_DROPS, "app owns a table"),
    );
    assert_eq!(condition(&report, "Ready"), Some(("False", "UnsafeRoleDrops")));
    assert_eq!(events(&report), ["UnsafeRoleDropsBlocked"]);
}

#[test]
fn whose_turn_it_is_not_says_nothing() {
    let first = pass(&policy(&json!({}), None), found(End::Applied, 1), 0);
    let again = policy(&json!({}), Some(first.status.clone()));
    let report = problem(&again, &Problem::transient(problems::LOCK_CONTENTION, "busy"));
    assert_eq!(report.status, first.status);
    assert!(report.notices.is_empty());
}

#[test]
fn a_conflict_is_told_as_such_and_as_over() {
    let rival = Rival {
        who: Who {
            key: Key {
                namespace: "ns".into(),
                name: "other".into(),
            },
            uid: "v".into(),
        },
        over: vec!["role \"app\"".into()],
    };
    let conflict = Problem::human(problems::CONFLICT, "policy ns/other also declares role \"app\"");
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
    let over = pass(&later(&json!({}), first), found(End::InSync, 0), 30);
    assert_eq!(condition(&over, "Conflict"), Some(("False", "NoConflict")));
    assert_eq!(events(&over), ["ConflictResolved", "Recovered"]);
}

#[test]
fn a_pause_has_a_beginning_and_an_end() {
    let first = pass(&policy(&json!({}), None), found(End::Applied, 1), 0);
    let paused = unseen(&later(&json!({ "suspend": true }), first));
    assert_eq!(condition(&paused, "Paused"), Some(("True", "Suspended")));
    assert_eq!(condition(&paused, "Ready"), Some(("False", "Suspended")));
    assert_eq!((paused.settled, paused.again), ("Suspended", None));
    assert_eq!(events(&paused), ["Suspended"]);
    let resumed = pass(&later(&json!({}), paused), found(End::InSync, 0), 90);
    assert_eq!(condition(&resumed, "Paused"), Some(("False", "Active")));
    assert_eq!(events(&resumed), ["Resumed", "Reconciled"]);
}

#[test]
fn a_password_in_the_spec_is_told_of_until_it_is_gone() {
    let open = json!({ "connection": { "params": { "host": "h", "dbname": "d", "username": "u", "password": "hunter2" } } });
    let report = pass(&policy(&open, None), found(End::Applied, 1), 0);
    assert_eq!(
        condition(&report, "PasswordInSpec"),
        Some(("True", "LiteralPassword"))
    );
    assert!(events(&report).contains(&"PasswordInSpec"));
    assert!(!format!("{report:?}").contains("hunter2"));
    let closed = pass(&later(&json!({}), report), found(End::InSync, 0), 30);
    assert_eq!(condition(&closed, "PasswordInSpec"), None);
}

#[test]
fn a_requested_look_is_tried_and_handled() {
    let mut asked = policy(&json!({}), None);
    let request = ("reconcile.pgroles.io/requestedAt".to_owned(), "noon".to_owned());
    asked.metadata.annotations = Some([request].into());
    let failed = problem(&asked, &Problem::human("InsufficientPrivileges", "no"));
    assert_eq!(failed.status.last_attempted_reconcile_at.as_deref(), Some("noon"));
    assert_eq!(failed.status.last_handled_reconcile_at, None);
    let done = pass(&asked, found(End::InSync, 0), 0);
    assert_eq!(done.status.last_handled_reconcile_at.as_deref(), Some("noon"));
}

#[test]
fn what_happens_to_plans_is_told_in_order() {
    let plan = || "shop-plan-1".to_owned();
    let happened = vec![
        Happening::Created(plan()),
        Happening::Approved(plan(), "alice".to_owned()),
        Happening::Succeeded(plan(), 3),
        Happening::Rejected(plan(), "bob".to_owned()),
        Happening::Failed(plan(), "no right".to_owned()),
    ];
    let applied = Applied {
        told: Some(found(End::Applied, 3)),
        happened,
    };
    let report = passed(&policy(&json!({}), None), &applied, None, &[], 0);
    assert_eq!(
        events(&report),
        [
            "PlanCreated",
            "PlanApproved",
            "ApplySucceeded",
            "PlanRejected",
            "ApplyFailed",
            "Reconciled"
        ]
    );
    let notes: Vec<_> = report.notices.iter().map(|notice| notice.note.as_str()).collect();
    assert!(
        notes[1].contains("by alice") && notes[2].contains("3 change(s)") && notes[4].contains("no right")
    );
}

#[test]
fn the_marks_of_passwords_follow_those_that_are_asked_for() {
    let spec = json!({ "roles": [{ "name": "app", "login": true, "password": { "generate": {} } }] });
    let marks = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), "mark".to_owned()))
            .collect()
    };
    let mut told = found(End::Applied, 1);
    told.marks = Some(marks(&["app"]));
    let set = pass(&policy(&spec, None), told, 0);
    assert_eq!(set.status.applied_password_source_versions, marks(&["app"]));
    // A plan that waits has set nothing; a role without a password has no mark.
    let waits = pass(&later(&spec, set.clone()), found(End::Waiting, 1), 1);
    assert_eq!(waits.status.applied_password_source_versions, marks(&["app"]));
    let gone = pass(&later(&json!({}), set), found(End::Waiting, 1), 1);
    assert!(gone.status.applied_password_source_versions.is_empty());
}
