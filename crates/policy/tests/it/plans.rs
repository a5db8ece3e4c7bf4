//! Plans: shown, waiting, approved, rejected, superseded, kept and deleted.

use std::io::Read as _;

use flate2::read::GzDecoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, condition, message};

/// `mode: plan` reports what would be done, and runs nothing.
#[tokio::test]
async fn a_policy_that_only_looks_changes_nothing() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy("looks", json!({ "interval": "1s", "mode": "plan", "roles": [{ "name": role, "login": true, "password": { "generate": {} } }] })).await;
    let policy = env.condition("looks", "Drifted", "True", "DriftDetected").await;
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
    env.event("looks", "DriftDetected").await;
    let plan = env.plan_in("looks", "Pending").await;
    env.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    env.plan_in("looks", "Approved").await;
    env.look_again("looks").await;
    assert!(!env.has_role(&role).await, "not even when it is approved");
    assert_eq!(
        env.plans_of("looks").await.len(),
        1,
        "a generated password is no other plan each time"
    );
    env.database
        .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'x'"))
        .await;
    env.look_again("looks").await;
    env.policy(
        "looks",
        json!({ "interval": "1s", "mode": "plan", "roles": [{ "name": role, "login": true }] }),
    )
    .await;
    env.condition("looks", "Drifted", "False", "InSync").await;
    env.event("looks", "PlanClean").await;
}

/// A plan with a password waits for approval, and is executed as approved.
#[tokio::test]
async fn a_plan_is_carried_out_once_it_is_approved() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.secret("app", json!({ "password": "first" })).await;
    let password = json!({ "secretRef": { "name": "app" }, "secretKey": "password" });
    env.policy(
        "asks",
        json!({ "interval": "1s", "approval": "manual", "roles": [{ "name": role, "login": true, "password": password }] }),
    )
    .await;
    let policy = env.condition("asks", "Ready", "True", "Planned").await;
    let plan = env.plan_in("asks", "Pending").await;
    assert!(message(&policy, "Ready").contains(&plan.name_any()));
    assert!(!env.has_role(&role).await);
    env.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    env.ready("asks").await;
    assert!(env.logs_in(&role, "first").await);
    let plan = env.plan_in("asks", "Applied").await;
    let status = plan.status.unwrap();
    assert_eq!(status.decided_by.unwrap().username, "alice");
    for reason in ["PlanCreated", "PlanApproved", "ApplyStarted", "ApplySucceeded"] {
        env.event("asks", reason).await;
    }
}

/// A decision in the status names the person; a rejection stays until other changes are needed.
#[tokio::test]
async fn a_rejected_plan_gives_way_to_another() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let (one, two) = (env.role("one"), env.role("two"));
    env.policy(
        "asks",
        json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": one }] }),
    )
    .await;
    let plan = env.plan_in("asks", "Pending").await;
    let decision = json!({ "status": {
        "decidedBy": { "username": "bob" },
        "conditions": [{ "type": "Denied", "status": "True", "reason": "No", "message": "not today",
                         "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    } });
    env.plans()
        .patch_status(
            &plan.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&decision),
        )
        .await
        .unwrap();
    let plan = env.plan_in("asks", "Rejected").await;
    assert_eq!(plan.status.unwrap().decided_by.unwrap().username, "bob");
    env.event("asks", "PlanRejected").await;
    env.look_again("asks").await;
    assert_eq!(env.plans_of("asks").await.len(), 1);
    env.policy(
        "asks",
        json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": one }, { "name": two }] }),
    )
    .await;
    wait::eventually(WAIT_TIMEOUT, "another plan", async || {
        env.plans_of("asks").await.len() == 2
    })
    .await;
    let newest = env.plan_in("asks", "Pending").await;
    // Approved, and outdated before it is executed.
    env.database.execute(&format!("CREATE ROLE {one}")).await;
    env.look_again("asks").await;
    let phase = env
        .plans()
        .get(&newest.name_any())
        .await
        .unwrap()
        .status
        .unwrap()
        .phase;
    assert_eq!(phase.as_str(), "Superseded");
    let last = env.plan_in("asks", "Pending").await;
    env.annotate_plan(&last.name_any(), "pgroles.io/approved").await;
    env.ready("asks").await;
    assert!(env.has_role(&two).await);
}

/// With both annotations, the rejection counts.
#[tokio::test]
async fn an_annotation_rejects_whatever_else_is_said() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy(
        "asks",
        json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": role }] }),
    )
    .await;
    let plan = env.plan_in("asks", "Pending").await.name_any();
    let both = json!({ "metadata": { "annotations": { "pgroles.io/approved": "true", "pgroles.io/rejected": "true" } } });
    env.plans()
        .patch(&plan, &PatchParams::default(), &Patch::Merge(&both))
        .await
        .unwrap();
    env.plan_in("asks", "Rejected").await;
    let policy = env.look_again("asks").await;
    assert!(message(&policy, "Ready").contains("was rejected"));
    assert!(!env.has_role(&role).await);
}

/// Finished plans are kept up to the limit.
#[tokio::test]
async fn old_plans_are_thrown_away() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    for n in 0..4 {
        let roles: Vec<_> = (0..=n)
            .map(|n| json!({ "name": env.role(&format!("r{n}")) }))
            .collect();
        env.policy("keeps", json!({ "planHistoryLimit": 2, "roles": roles }))
            .await;
        env.ready("keeps").await;
        assert!(env.has_role(&env.role(&format!("r{n}"))).await);
    }
    env.look_again("keeps").await;
    wait::eventually(WAIT_TIMEOUT, "two plans", async || {
        env.plans_of("keeps").await.len() == 2
    })
    .await;
}

/// A long plan is compressed into a `ConfigMap` that the plan owns.
#[tokio::test]
async fn a_long_plan_is_stored_beside_it() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let roles: Vec<_> = (0..300)
        .map(|n| json!({ "name": env.role(&format!("r{n}")) }))
        .collect();
    env.policy("long", json!({ "mode": "observe", "roles": roles }))
        .await;
    let policy = env.condition("long", "Drifted", "True", "DriftDetected").await;
    let status = policy.status.unwrap();
    assert!(
        status.planned_sql_truncated
            && status
                .planned_sql
                .unwrap()
                .ends_with("-- truncated for status --")
    );
    let plan = env.plan_in("long", "Pending").await;
    let stored = plan.status.clone().unwrap().sql_ref.unwrap();
    let map = env.config_maps().get(&stored.name).await.unwrap();
    assert_eq!(map.owner_references()[0].name, plan.name_any());
    assert_eq!(
        map.immutable,
        Some(true),
        "what was read before a decision cannot be replaced"
    );
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
    let env = TestEnv::new().await;
    let first = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy("cut", json!({ "interval": "1h", "roles": [{ "name": role }] }))
        .await;
    env.ready("cut").await;
    first.kill().await;
    let plan = env.plan_in("cut", "Applied").await;
    let applying = json!({ "status": { "phase": "Applying", "applyingSince": "2026-01-01T00:00:00Z", "appliedAt": null } });
    env.plans()
        .patch_status(
            &plan.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&applying),
        )
        .await
        .unwrap();
    let _second = env.operator().await;
    env.plan_in("cut", "Applied").await;
    assert_eq!(env.plans_of("cut").await.len(), 1);
}

/// People approve the SQL that they read: nobody else provides it.
#[tokio::test]
async fn a_prepared_text_is_not_taken_for_the_sql_of_a_plan() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let roles: Vec<_> = (0..300)
        .map(|n| json!({ "name": env.role(&format!("r{n}")) }))
        .collect();
    env.policy(
        "long",
        json!({ "interval": "1s", "approval": "manual", "roles": roles }),
    )
    .await;
    let plan = env.plan_in("long", "Pending").await;
    env.patch("long", json!({ "spec": { "suspend": true } })).await;
    env.condition("long", "Ready", "False", "Suspended").await;
    let params = DeleteParams::default();
    env.plans().delete(&plan.name_any(), &params).await.unwrap();
    let (mut forged, mut map) = (plan.clone(), ConfigMap::default());
    forged.metadata = ObjectMeta {
        name: Some("forged".into()),
        labels: Some(plan.labels().clone()),
        annotations: Some(plan.annotations().clone()),
        ..ObjectMeta::default()
    };
    forged.status = None;
    map.metadata.name = Some("forged-sql".into());
    map.binary_data = Some([("plan.sql.gz".to_owned(), ByteString(b"harmless".to_vec()))].into());
    env.config_maps()
        .create(&PostParams::default(), &map)
        .await
        .unwrap();
    env.plans().create(&PostParams::default(), &forged).await.unwrap();
    env.patch("long", json!({ "spec": { "suspend": false } })).await;
    env.condition("long", "Ready", "False", "PlanSqlStorageFailed")
        .await;
    env.config_maps().delete("forged-sql", &params).await.unwrap();
    let plan = env.plan_in("long", "Pending").await;
    let stored = plan.status.unwrap().sql_ref.unwrap();
    assert_eq!(
        env.config_maps().get(&stored.name).await.unwrap().immutable,
        Some(true)
    );
}

/// A decision is about the changes of one policy in one database.
#[tokio::test]
async fn a_plan_cannot_be_moved_to_another_database_or_policy() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    let spec = json!({ "interval": "1h", "approval": "manual", "roles": [{ "name": role }] });
    env.policy("asks", spec).await;
    let plan = env.plan_in("asks", "Pending").await.name_any();
    for spec in [
        json!({ "managedDatabaseIdentity": "1/2" }),
        json!({ "policyRef": { "name": "other" } }),
    ] {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let patched = env.plans().patch(&plan, &PatchParams::default(), &patch).await;
        let refused = patched.unwrap_err().to_string();
        assert!(refused.contains("a plan cannot change"), "{refused}");
    }
    env.annotate_plan(&plan, "pgroles.io/approved").await;
    env.ready("asks").await;
    assert!(env.has_role(&role).await);
}
