//! The contents of a status.

use stanchion_kernel::problem::Cause;

use super::*;

#[test]
fn a_first_success_says_everything() {
    let report = pass(&policy(&json!({}), None), found(PlanOutcome::Applied, 1), 0);
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
    assert_eq!(report.requeue_after, Some(std::time::Duration::from_mins(5)));
}

/// Nothing in the status changes, not even a time: otherwise it would be written.
#[test]
fn a_second_success_says_nothing_new() {
    let first = pass(&policy(&json!({}), None), found(PlanOutcome::Applied, 1), 0);
    let again = policy(&json!({}), Some(first.status.clone()));
    let second = pass(&again, found(PlanOutcome::InSync, 0), 30);
    assert_eq!(second.status, first.status);
    assert!(second.events.is_empty());
    let converged = unseen(&again);
    assert_eq!(converged.status, first.status);
    assert_eq!(converged.requeue_after, first.requeue_after);
}

/// A status of a version that did not record where a plan was applied.
#[test]
fn what_an_earlier_version_applied_counts() {
    let former = |result: PassResult, edit: fn(&mut PostgresPolicyStatus)| {
        let mut report = pass(&policy(&json!({}), None), result, 0);
        report.status.applied_database_identity = None;
        edit(&mut report.status);
        let after = pass(&later(&json!({}), report), found(PlanOutcome::InSync, 0), 30);
        after.status.applied_database_identity
    };
    let applied = || found(PlanOutcome::Applied, 1);
    assert_eq!(former(applied(), |_| ()).as_deref(), Some("4711/5"));
    // Nothing was applied, or it was applied elsewhere.
    assert_eq!(former(found(PlanOutcome::InSync, 0), |_| ()), None);
    assert_eq!(former(found(PlanOutcome::Waiting, 1), |_| ()), None);
    let elsewhere = |status: &mut PostgresPolicyStatus| {
        status.managed_database_identity = Some("4711/6".to_owned());
    };
    assert_eq!(former(applied(), elsewhere), None);
}

#[test]
fn a_repair_moves_the_time_and_is_no_news_for_people() {
    let first = pass(&policy(&json!({}), None), found(PlanOutcome::Applied, 1), 0);
    let second = pass(&later(&json!({}), first), found(PlanOutcome::Applied, 4), 30);
    assert_eq!(second.status.last_successful_reconcile_time, Some(at(30)));
    assert_eq!(second.status.change_summary.unwrap().total, 4);
    assert!(second.events.is_empty());
}

#[test]
fn a_plan_that_waits_or_was_refused_is_named() {
    let spec = json!({ "approval": "manual" });
    let waits = pass(&policy(&spec, None), found(PlanOutcome::Waiting, 1), 0);
    assert_eq!(condition(&waits, "Ready"), Some(("True", "Planned")));
    assert!(
        message(&waits, "Ready").contains("annotate plan shop-plan-1 with pgroles.io/approved=true"),
        "{}",
        message(&waits, "Ready")
    );
    let refused = pass(&later(&spec, waits), found(PlanOutcome::Rejected, 1), 1);
    assert!(message(&refused, "Ready").contains("shop-plan-1 was rejected"));
    assert_eq!(condition(&refused, "Drifted"), Some(("True", "DriftDetected")));
}

#[test]
fn lock_contention_is_not_reported() {
    let first = pass(&policy(&json!({}), None), found(PlanOutcome::Applied, 1), 0);
    let again = policy(&json!({}), Some(first.status.clone()));
    let report = problem(
        &again,
        &Problem::transient(problems::LOCK_CONTENTION, "busy").with_cause(Cause::DatabaseBusy),
    );
    assert_eq!(report.status, first.status);
    assert!(report.events.is_empty());
}

#[test]
fn a_password_in_the_spec_is_reported_until_it_is_removed() {
    let open = json!({ "connection": { "params": { "host": "h", "dbname": "d", "username": "u", "password": "hunter2" } } });
    let report = pass(&policy(&open, None), found(PlanOutcome::Applied, 1), 0);
    assert_eq!(
        condition(&report, "PasswordInSpec"),
        Some(("True", "LiteralPassword"))
    );
    assert!(events(&report).contains(&"PasswordInSpec"));
    assert!(!format!("{report:?}").contains("hunter2"));
    let closed = pass(&later(&json!({}), report), found(PlanOutcome::InSync, 0), 30);
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
    let done = pass(&asked, found(PlanOutcome::InSync, 0), 0);
    assert_eq!(done.status.last_handled_reconcile_at.as_deref(), Some("noon"));
}

#[test]
fn password_fingerprints_follow_the_spec() {
    let spec = json!({ "roles": [{ "name": "app", "login": true, "password": { "generate": {} } }] });
    let fingerprints = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), "mark".to_owned()))
            .collect()
    };
    let mut result = found(PlanOutcome::Applied, 1);
    result.fingerprints = Some(fingerprints(&["app"]));
    let set = pass(&policy(&spec, None), result, 0);
    assert_eq!(
        set.status.applied_password_source_versions,
        fingerprints(&["app"])
    );
    // A waiting plan has set nothing; a role without a password has no fingerprint.
    let waits = pass(&later(&spec, set.clone()), found(PlanOutcome::Waiting, 1), 1);
    assert_eq!(
        waits.status.applied_password_source_versions,
        fingerprints(&["app"])
    );
    let gone = pass(&later(&json!({}), set), found(PlanOutcome::Waiting, 1), 1);
    assert!(gone.status.applied_password_source_versions.is_empty());
}

/// F13, F16: a server that is refused is not connected, whatever an earlier reconcile said; one that answered is.
#[test]
fn a_refused_server_is_not_connected() {
    for (reason, cause) in [
        ("DatabaseConnectionFailed", Cause::Unreachable),
        ("ServerNotVerified", Cause::ServerRefused),
        ("AddressNotAllowed", Cause::ServerRefused),
        ("AnswerTooLarge", Cause::AnswerTooLarge),
    ] {
        let policy = policy(&json!({}), None);
        let refused = Problem::human(reason, "no".to_owned()).with_cause(cause);
        let target = validate(&policy).unwrap();
        let passed = Passed {
            target: Some(&target),
            known: None,
            applied: &Applied::default(),
            problem: Some(&refused),
        };
        let report = build(&policy, &passed, at(10));
        assert_eq!(condition(&report, "DatabaseConnected"), Some(("False", reason)));
        let report = problem(&policy, &refused);
        assert_eq!(
            condition(&report, "DatabaseConnected"),
            Some(("True", "Verified"))
        );
    }
}

#[test]
fn what_roles_hold_elsewhere_is_a_condition() {
    let spec = json!({});
    let holds = |count: usize| PassResult {
        holdings: (1..=count).map(|number| format!("holding {number}")).collect(),
        ..found(PlanOutcome::InSync, 0)
    };
    let first = pass(&policy(&spec, None), holds(7), 1);
    assert_eq!(
        condition(&first, condition::UNMANAGED),
        Some(("True", "HeldElsewhere"))
    );
    assert_eq!(condition(&first, condition::READY), Some(("True", "Reconciled")));
    assert_eq!(
        message(&first, condition::UNMANAGED),
        "holding 1; holding 2; holding 3; holding 4; holding 5 and 2 more. They stay, unless the role is exclusive: true"
    );
    // A pass that did not read the database keeps what is known.
    let unchanged = unseen(&later(&spec, first));
    assert_eq!(
        condition(&unchanged, condition::UNMANAGED),
        Some(("True", "HeldElsewhere"))
    );
    let gone = pass(&later(&spec, unchanged), holds(0), 2);
    assert_eq!(condition(&gone, condition::UNMANAGED), None);
}

/// A status that is too large cannot be written at all.
#[test]
fn a_large_database_fits_into_the_status() {
    let lines = || (0..20_000).map(|number| format!("{}{number}", "a long name ".repeat(20)));
    let blocker = |message| stanchion_roles::plan::Blocker {
        check: stanchion_roles::plan::Check::ExecutorAuthority,
        code: "code",
        role: None,
        message,
    };
    let plan = stanchion_roles::plan::Plan {
        blockers: lines().map(blocker).collect(),
        ..stanchion_roles::plan::Plan::default()
    };
    let mut result = found(PlanOutcome::Observed, 1);
    result.warnings = lines().collect();
    result.holdings = lines().collect();
    let observed = pass(&policy(&json!({}), None), result, 0);
    assert!(
        observed
            .status
            .plan_warnings
            .last()
            .unwrap()
            .starts_with("and 19980 more")
    );
    let refused = problem(&later(&json!({}), observed), &problems::blocked(&plan));
    assert!(message(&refused, "Ready").ends_with(" and 19990 more"));
    let size = serde_json::to_string(&refused.status).unwrap().len();
    assert!(size < 64 * 1024, "{size} bytes");
}
