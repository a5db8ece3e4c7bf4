//! From an object to a login.

use serde_json::json;
use stanchion_api::user::Phase;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, condition, role_name};

/// A1: the guide's object works unchanged, on every version, with each kind of administrator.
#[tokio::test]
async fn the_object_of_the_guide_becomes_a_login() {
    TestEnv::on_every_version(async |env| {
        let role = role_name();
        let _operator = env.operator().await;
        env.password("alice", "pässwörd' \"1").await;
        env.user("alice", &role, json!({})).await;
        let user = env.ready("alice").await;
        let status = user.status.clone().unwrap();
        assert_eq!(status.phase, Some(Phase::Ready));
        assert_eq!(status.created, Some(true));
        assert_eq!(status.message.as_deref(), Some("User created successfully"));
        assert_eq!(status.provisioned_username.as_deref(), Some(role.as_str()));
        assert_eq!(status.provisioned_database.as_deref(), Some(env.database.name()));
        assert_eq!(status.adopted, Some(false));
        assert_eq!(
            condition(&user, "DatabaseConnected"),
            Some(("True".into(), "Connected".into()))
        );
        assert!(env.logs_in(&role, "pässwörd' \"1").await);
        assert_eq!(
            user.metadata.finalizers,
            Some(vec!["db.example.com/postgresuser".into()])
        );
    })
    .await;
}

/// C20, A11: a changed Secret takes effect; the generation stays.
#[tokio::test]
async fn a_rotated_secret_takes_effect() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let _operator = env.operator().await;
        env.password("bob", "first").await;
        env.user("bob", &role, json!({})).await;
        let before = env.ready("bob").await;
        env.password("bob", "second").await;
        wait::eventually(WAIT_TIMEOUT, "the new password logs in", || {
            env.logs_in(&role, "second")
        })
        .await;
        assert!(!env.logs_in(&role, "first").await);
        let after = env.ready("bob").await;
        assert_eq!(before.metadata.generation, after.metadata.generation);
    })
    .await;
}

/// C22, A12: an object may be created before its Secret.
#[tokio::test]
async fn a_missing_secret_is_waited_for() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let _operator = env.operator().await;
        env.user("carol", &role, json!({})).await;
        let user = env.condition("carol", "Ready", "False", "SecretNotFound").await;
        let status = user.status.unwrap();
        assert_eq!(status.phase, Some(Phase::Failed));
        assert!(
            status
                .message
                .unwrap()
                .starts_with("cannot read password secret: ")
        );
        assert!(!env.has_role(&role).await);
        env.password("carol", "now").await;
        env.ready("carol").await;
        assert!(env.logs_in(&role, "now").await);
    })
    .await;
}

/// C11, A15: a restart and irrelevant changes write nothing.
#[tokio::test]
async fn a_restart_writes_nothing() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let first = env.operator().await;
        env.password("dave", "secret").await;
        env.user("dave", &role, json!({ "privileges": ["CONNECT", "READ"] }))
            .await;
        let before = env.ready("dave").await;
        first.kill().await;
        let sql = env.sql_writes();
        let faults = stanchion_testkit::faults::Faults::new();
        let second = env.operator_with(&faults).await;
        wait::eventually(WAIT_TIMEOUT, "a pass", || async {
            let passes = "controller_runtime_reconcile_total{controller=\"user\",result=\"requeue_after\"} ";
            let text = second.metrics_text();
            let mut counts = text.lines().filter_map(|line| line.strip_prefix(passes));
            counts.any(|count| count != "0")
        })
        .await;
        assert_eq!(faults.writes().len(), 0, "{:?}", faults.writes());
        let after = env.users().get("dave").await.unwrap();
        assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
        assert_eq!(env.sql_writes(), sql);
    })
    .await;
}
