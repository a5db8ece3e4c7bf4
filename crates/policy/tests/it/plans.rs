//! Plans: shown, waiting, approved, rejected, superseded, kept and deleted.

use std::io::Read as _;

use flate2::read::GzDecoder;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use stanchion_testkit::wait;

use super::bed::{Bed, PATIENCE, condition, message};

/// `mode: plan` reports what would be done, and runs nothing.
#[tokio::test]
async fn a_policy_that_only_looks_changes_nothing() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy("looks", json!({ "interval": "1s", "mode": "plan", "roles": [{ "name": role, "login": true, "password": { "generate": {} } }] })).await;
    let policy = bed.condition("looks", "Drifted", "True", "DriftDetected").await;
    assert_eq!(
        condition(&policy, "Ready"),
        Some(("True".into(), "Planned".into()))
    );
    let status = policy.status.unwrap();
    assert!(
        status
            .planned_sql
            .unwrap()
            .contains(&format!("CREATE ROLE \"{role}\""))
    );
    assert_eq!(
        status
            .last_reconcile_mode
            .map(stanchion_api::policy::Mode::applies),
        Some(false)
    );
    bed.event("looks", "DriftDetected").await;
    let plan = bed.plan_in("looks", "Pending").await;
    bed.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    bed.plan_in("looks", "Approved").await;
    bed.look_again("looks").await;
    assert!(!bed.has_role(&role).await, "not even when it is approved");
    assert_eq!(
        bed.plans_of("looks").await.len(),
        1,
        "a generated password is no other plan each time"
    );
    bed.database
        .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'x'"))
        .await;
    bed.look_again("looks").await;
    bed.policy(
        "looks",
        json!({ "interval": "1s", "mode": "plan", "roles": [{ "name": role, "login": true }] }),
    )
    .await;
    bed.condition("looks", "Drifted", "False", "InSync").await;
    bed.event("looks", "PlanClean").await;
}

/// A plan with a password waits for approval, and is executed as approved.
#[tokio::test]
async fn a_plan_is_carried_out_once_it_is_approved() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.secret("app", json!({ "password": "first" })).await;
    let password = json!({ "secretRef": { "name": "app" }, "secretKey": "password" });
    bed.policy(
        "asks",
        json!({ "interval": "1s", "approval": "manual", "roles": [{ "name": role, "login": true, "password": password }] }),
    )
    .await;
    let policy = bed.condition("asks", "Ready", "True", "Planned").await;
    let plan = bed.plan_in("asks", "Pending").await;
    assert!(message(&policy, "Ready").contains(&plan.name_any()));
    assert!(!bed.has_role(&role).await);
    bed.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    bed.ready("asks").await;
    assert!(bed.logs_in(&role, "first").await);
    let plan = bed.plan_in("asks", "Applied").await;
    let status = plan.status.unwrap();
    assert_eq!(status.decided_by.unwrap().username, "alice");
    for reason in ["PlanCreated", "PlanApproved", "ApplyStarted", "ApplySucceeded"] {
        bed.event("asks", reason).await;
    }
}

/// A decision in the status names the person; a rejection stays until other changes are needed.
#[tokio::test]
async fn a_rejected_plan_gives_way_to_another() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let (one, two) = (bed.role("one"), bed.role("two"));
    bed.policy(
        "asks",
        json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": one }] }),
    )
    .await;
    let plan = bed.plan_in("asks", "Pending").await;
    let decision = json!({ "status": {
        "decidedBy": { "username": "bob" },
        "conditions": [{ "type": "Denied", "status": "True", "reason": "No", "message": "not today",
                         "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    } });
    bed.plans()
        .patch_status(
            &plan.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&decision),
        )
        .await
        .unwrap();
    let plan = bed.plan_in("asks", "Rejected").await;
    assert_eq!(plan.status.unwrap().decided_by.unwrap().username, "bob");
    bed.event("asks", "PlanRejected").await;
    bed.look_again("asks").await;
    assert_eq!(bed.plans_of("asks").await.len(), 1);
    bed.policy(
        "asks",
        json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": one }, { "name": two }] }),
    )
    .await;
    wait::eventually(PATIENCE, "another plan", async || {
        bed.plans_of("asks").await.len() == 2
    })
    .await;
    let newest = bed.plan_in("asks", "Pending").await;
    // Approved, and outdated before it is executed.
    bed.database.execute(&format!("CREATE ROLE {one}")).await;
    bed.look_again("asks").await;
    let phase = bed
        .plans()
        .get(&newest.name_any())
        .await
        .unwrap()
        .status
        .unwrap()
        .phase;
    assert_eq!(phase.as_str(), "Superseded");
    let last = bed.plan_in("asks", "Pending").await;
    bed.annotate_plan(&last.name_any(), "pgroles.io/approved").await;
    bed.ready("asks").await;
    assert!(bed.has_role(&two).await);
}

/// With both annotations, the rejection counts.
#[tokio::test]
async fn an_annotation_rejects_whatever_else_is_said() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy(
        "asks",
        json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": role }] }),
    )
    .await;
    let plan = bed.plan_in("asks", "Pending").await.name_any();
    let both = json!({ "metadata": { "annotations": { "pgroles.io/approved": "true", "pgroles.io/rejected": "true" } } });
    bed.plans()
        .patch(&plan, &PatchParams::default(), &Patch::Merge(&both))
        .await
        .unwrap();
    bed.plan_in("asks", "Rejected").await;
    let policy = bed.look_again("asks").await;
    assert!(message(&policy, "Ready").contains("was rejected"));
    assert!(!bed.has_role(&role).await);
}

/// Finished plans are kept up to the limit.
#[tokio::test]
async fn old_plans_are_thrown_away() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    for n in 0..4 {
        let roles: Vec<_> = (0..=n)
            .map(|n| json!({ "name": bed.role(&format!("r{n}")) }))
            .collect();
        bed.policy("keeps", json!({ "planHistoryLimit": 2, "roles": roles }))
            .await;
        bed.ready("keeps").await;
        assert!(bed.has_role(&bed.role(&format!("r{n}"))).await);
    }
    bed.look_again("keeps").await;
    wait::eventually(PATIENCE, "two plans", async || {
        bed.plans_of("keeps").await.len() == 2
    })
    .await;
}

/// A long plan is compressed into a `ConfigMap` that the plan owns.
#[tokio::test]
async fn a_long_plan_is_stored_beside_it() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let roles: Vec<_> = (0..300)
        .map(|n| json!({ "name": bed.role(&format!("r{n}")) }))
        .collect();
    bed.policy("long", json!({ "mode": "observe", "roles": roles }))
        .await;
    let policy = bed.condition("long", "Drifted", "True", "DriftDetected").await;
    let status = policy.status.unwrap();
    assert!(
        status.planned_sql_truncated
            && status
                .planned_sql
                .unwrap()
                .ends_with("-- truncated for status --")
    );
    let plan = bed.plan_in("long", "Pending").await;
    let stored = plan.status.clone().unwrap().sql_ref.unwrap();
    let map = bed.config_maps().get(&stored.name).await.unwrap();
    assert_eq!(map.owner_references()[0].name, plan.name_any());
    let mut text = String::new();
    GzDecoder::new(map.binary_data.unwrap()[&stored.key].0.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text.matches("CREATE ROLE").count(), 300);
    let (written, status) = (plan.annotations(), plan.status.as_ref().unwrap());
    for (annotation, bytes) in [
        ("pgroles.io/sql-original-bytes", status.sql_original_bytes),
        ("pgroles.io/sql-stored-bytes", status.sql_stored_bytes),
    ] {
        assert_eq!(written[annotation], bytes.unwrap().to_string());
    }
    assert_eq!(status.sql_original_bytes, i64::try_from(text.len()).ok());
}

/// The next operator finds and finishes an interrupted plan.
#[tokio::test]
async fn an_interrupted_plan_is_finished() {
    let bed = Bed::new().await;
    let first = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy("cut", json!({ "interval": "1h", "roles": [{ "name": role }] }))
        .await;
    bed.ready("cut").await;
    first.kill().await;
    let plan = bed.plan_in("cut", "Applied").await;
    let applying = json!({ "status": { "phase": "Applying", "applyingSince": "2026-01-01T00:00:00Z", "appliedAt": null } });
    bed.plans()
        .patch_status(
            &plan.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&applying),
        )
        .await
        .unwrap();
    let _second = bed.operator().await;
    bed.plan_in("cut", "Applied").await;
    assert_eq!(bed.plans_of("cut").await.len(), 1);
}
