//! Locks that somebody takes to keep a login or a password.

use serde_json::json;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::wait;
use stanchion_user::Openings;

use crate::test_env::{How, TestEnv, WAIT_TIMEOUT, any, condition, message, role_name};

/// F11: somebody holds the lock that orders the operator's writers. A password is reported as pending, and a deletion
/// disables the login nevertheless.
#[tokio::test]
async fn keeps_no_login_open_with_a_lock() {
    let env = TestEnv::new(any()).await;
    let how = How {
        openings: Openings::default(),
        backoff: crate::test_env::QUICK_BACKOFF,
        ..env.how().await
    };
    let _operator = env.start(how);
    let (role, stranger) = (role_name(), env.group("LOGIN PASSWORD 's'").await);
    env.password("alice", "first").await;
    env.user("alice", &role, json!({})).await;
    env.ready("alice").await;
    let server = env.database.server();
    let mut locked = Vec::new();
    for database in ["postgres", env.database.name()] {
        let session = server.connect(&stranger, "s", database).await.unwrap();
        let lock = format!("SELECT pg_advisory_lock({})", stanchion_postgres::lock::ROLES);
        session.batch_execute(&lock).await.unwrap();
        locked.push(session);
    }
    env.password("alice", "second").await;
    wait::eventually(WAIT_TIMEOUT, "the new password", async || {
        env.logs_in(&role, "second").await
    })
    .await;
    assert!(!env.logs_in(&role, "first").await);
    env.delete("alice").await;
    let login = format!("SELECT count(*) FROM pg_roles WHERE rolname = '{role}' AND rolcanlogin");
    env.becomes(&login, "0").await;
    drop(locked);
    env.gone("alice").await;
    assert!(!env.has_role(&role).await);
}

/// Every login may change its own password, and so lock its own role. That delays neither a new password nor a deletion.
#[tokio::test]
async fn keeps_no_login_open_with_a_lock_of_its_own() {
    TestEnv::on_each_kind(async |env| {
        let _operator = env.operator().await;
        let role = role_name();
        env.password("alice", "first").await;
        env.user("alice", &role, json!({})).await;
        env.ready("alice").await;
        let lock = "BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'mine'";
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(env.database.connect(&role, "first").await.unwrap());
        }
        held[0].batch_execute(lock).await.unwrap();
        // Another session of the role waits in front of the operator.
        let waiting = tokio::spawn({
            let second = held.remove(1);
            async move { second.batch_execute(lock).await.map(|()| second) }
        });
        env.password("alice", "second").await;
        wait::eventually(WAIT_TIMEOUT, "the new password", async || {
            env.logs_in(&role, "second").await
        })
        .await;
        assert!(!env.logs_in(&role, "first").await && !env.logs_in(&role, "mine").await);
        assert!(waiting.await.unwrap().is_err() && held[0].is_closed());

        let session = env.database.connect(&role, "second").await.unwrap();
        session.batch_execute(lock).await.unwrap();
        env.delete("alice").await;
        env.gone("alice").await;
        assert!(!env.has_role(&role).await && session.is_closed());
    })
    .await;
}

/// F11: while a lock keeps a new password from being set, the status does not say that it is.
#[tokio::test]
async fn a_password_that_waits_is_pending() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    env.password("alice", "first").await;
    env.user("alice", &role, json!({})).await;
    env.ready("alice").await;
    let server = env.database.server();
    let session = server.connect(ADMIN, ADMIN_PASSWORD, "postgres").await.unwrap();
    let keep = format!("BEGIN; ALTER ROLE {role} CONNECTION LIMIT 5");
    session.batch_execute(&keep).await.unwrap();
    env.password("alice", "second").await;
    let user = env.condition("alice", "PasswordSynced", "False", "Pending").await;
    let said = message(&user, "PasswordSynced");
    assert!(said.starts_with("the new password is not set yet"), "{said}");
    assert!(env.logs_in(&role, "first").await && !env.logs_in(&role, "second").await);
    session.batch_execute("ROLLBACK").await.unwrap();
    wait::eventually(WAIT_TIMEOUT, "the new password", async || {
        env.logs_in(&role, "second").await
    })
    .await;
    wait::eventually(WAIT_TIMEOUT, "the condition", async || {
        let user = env.users().get("alice").await.unwrap();
        condition(&user, "PasswordSynced").is_some_and(|(status, _)| status == "True")
    })
    .await;
}
