//! Sessions that end with their password or their login.

use jiff::Timestamp;
use serde_json::json;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::wait;

use super::passwords::{generated, password};
use super::test_env::{TestEnv, WAIT_TIMEOUT, role_name};

/// `terminateSessions`: a stolen session ends with the password that opened it.
#[tokio::test]
async fn sessions_end_with_their_password() {
    TestEnv::on_each_kind(async |env| end_with_their_password(&env).await).await;
}

async fn end_with_their_password(env: &TestEnv) {
    let (role, _operator) = (role_name(), env.operator().await);
    let rotation = json!({ "terminateSessions": true });
    env.user("alice", &role, generated(&rotation)).await;
    env.ready("alice").await;
    let secret = env.values("alice-credentials").await["password"].clone();
    let session = env.database.connect(&role, &secret).await.unwrap();
    env.annotate("alice", "db.example.com/rotate-at", &Timestamp::now().to_string())
        .await;
    wait::eventually(WAIT_TIMEOUT, "the end of the session", async || {
        session.is_closed()
    })
    .await;
}

/// A session of an earlier password, or of a retired login, that is still there ends when the operator sees it: after a
/// crash between the change and the end of the sessions, and when `terminateSessions` is set later.
#[tokio::test]
async fn a_session_that_outlived_its_password_ends() {
    TestEnv::on_each_kind(async |env| {
        let operator = env.operator().await;
        for (name, strategy) in [("one", "InPlace"), ("two", "DualUser")] {
            let role = role_name();
            let rotation = |ends: bool| {
                let mut rotation = json!({ "strategy": strategy, "terminateSessions": ends });
                if strategy == "DualUser" {
                    rotation["gracePeriod"] = json!("0s");
                }
                generated(&rotation)
            };
            env.user(name, &role, rotation(false)).await;
            let user = env.ready(name).await;
            let before = password(&user).last_changed;
            let first = env.values(&format!("{name}-credentials")).await;
            let stolen = env
                .database
                .connect(&first["username"], &first["password"])
                .await
                .unwrap();
            env.annotate(name, "db.example.com/rotate-at", &Timestamp::now().to_string())
                .await;
            env.until(name, |user| password(user).last_changed > before).await;
            env.ready(name).await;
            assert!(!env.logs_in(&first["username"], &first["password"]).await);
            let second = env.values(&format!("{name}-credentials")).await;
            let fresh = env
                .database
                .connect(&second["username"], &second["password"])
                .await
                .unwrap();
            assert!(!stolen.is_closed());
            env.user(name, &role, rotation(true)).await;
            wait::eventually(WAIT_TIMEOUT, "the end of the session", async || {
                stolen.is_closed()
            })
            .await;
            env.look_again(&operator, name).await;
            env.ready(name).await;
            assert!(
                fresh.simple_query("SELECT 1").await.is_ok(),
                "that of the new password stays"
            );
        }
    })
    .await;
}

/// A lock delays the new password: until it is set, the old one opens sessions, which end with it.
#[tokio::test]
async fn a_session_that_an_old_password_opens_while_the_new_one_waits_ends() {
    TestEnv::on_each_kind(async |env| {
        let (role, _operator) = (role_name(), env.operator().await);
        env.user("alice", &role, generated(&json!({ "terminateSessions": true })))
            .await;
        env.ready("alice").await;
        let old = env.values("alice-credentials").await["password"].clone();
        let server = env.database.server();
        let lock = server.connect(ADMIN, ADMIN_PASSWORD, "postgres").await.unwrap();
        let keep = format!("BEGIN; ALTER ROLE {role} CONNECTION LIMIT 5");
        lock.batch_execute(&keep).await.unwrap();
        env.annotate("alice", "db.example.com/rotate-at", &Timestamp::now().to_string())
            .await;
        // The pass that generated the password has failed, and another one sets it.
        env.condition("alice", "PasswordSynced", "False", "Pending").await;
        let new = env.values("alice-credentials").await["password"].clone();
        assert_ne!(new, old);
        let session = env.database.connect(&role, &old).await.unwrap();
        lock.batch_execute("ROLLBACK").await.unwrap();
        wait::eventually(WAIT_TIMEOUT, "the end of the session", async || {
            session.is_closed()
        })
        .await;
        assert!(env.logs_in(&role, &new).await && !env.logs_in(&role, &old).await);
    })
    .await;
}
