//! Failures, how they are reported, and recovery.

use serde_json::json;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, condition, message};

/// An invalid spec is reported, and recovers with a valid one.
#[tokio::test]
async fn an_invalid_spec_is_named() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.database_secret().await;
    env.policy(
        "invalid",
        json!({ "schemas": [{ "name": "a", "profiles": ["no-such"] }] }),
    )
    .await;
    let policy = env.condition("invalid", "Ready", "False", "InvalidSpec").await;
    assert!(message(&policy, "Ready").contains("no-such"));
    assert_eq!(
        condition(&policy, "Degraded"),
        Some(("True".into(), "InvalidSpec".into()))
    );
    assert_eq!(
        condition(&policy, "Stalled"),
        Some(("True".into(), "InvalidSpec".into()))
    );
    env.event("invalid", "InvalidSpec").await;
    assert_eq!(operator.total("pgroles_invalid_spec_total"), 1);
    env.policy(
        "invalid",
        json!({ "schemas": [], "roles": [{ "name": env.role("app") }] }),
    )
    .await;
    env.ready("invalid").await;
    env.event("invalid", "Recovered").await;
}

/// A missing Secret, then a missing key, then a wrong value; fixing each enqueues the policy.
#[tokio::test]
async fn a_missing_secret_is_waited_for() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.policy(
        "waits",
        json!({ "interval": "1h", "roles": [{ "name": env.role("app") }] }),
    )
    .await;
    env.condition("waits", "Ready", "False", "SecretFetchFailed")
        .await;
    env.event("waits", "SecretFetchFailed").await;
    env.secret("db", json!({ "OTHER": "x" })).await;
    let policy = env.condition("waits", "Ready", "False", "SecretMissing").await;
    assert!(message(&policy, "Ready").contains("DATABASE_URL"));
    env.secret("db", json!({ "DATABASE_URL": "not a url" })).await;
    env.condition("waits", "Ready", "False", "InvalidConnectionParams")
        .await;
    env.database_secret().await;
    env.ready("waits").await;
    env.event("waits", "Recovered").await;
}

/// Changed credentials take effect: invalid ones, and valid ones again.
#[tokio::test]
async fn a_rotated_secret_is_followed() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    env.policy(
        "rotates",
        json!({ "interval": "1h", "roles": [{ "name": env.role("app") }] }),
    )
    .await;
    env.ready("rotates").await;
    let wrong = env.database.url_of("postgres", "wrong");
    env.secret("db", json!({ "DATABASE_URL": env.url_through(&wrong) }))
        .await;
    let policy = env
        .condition("rotates", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    assert!(!format!("{policy:?}").contains("wrong@"));
    env.event("rotates", "DatabaseConnectionFailed").await;
    env.database_secret().await;
    env.ready("rotates").await;
    env.event("rotates", "Recovered").await;
}

/// A login that may not create roles is reported; with the privilege, the policy recovers.
#[tokio::test]
async fn insufficient_privileges_are_named() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let (login, role) = (env.role("weak"), env.role("app"));
    env.database
        .execute(&format!("CREATE ROLE {login} LOGIN PASSWORD 'weak'"))
        .await;
    let url = env.url_through(&env.database.url_of(&login, "weak"));
    env.secret("db", json!({ "DATABASE_URL": url })).await;
    env.policy("weak", json!({ "interval": "1h", "roles": [{ "name": role }] }))
        .await;
    env.condition("weak", "Ready", "False", "InsufficientPrivileges")
        .await;
    env.event("weak", "InsufficientPrivileges").await;
    let plans = env.plans_of("weak").await;
    assert_eq!(plans.len(), 1);
    env.database
        .execute(&format!("ALTER ROLE {login} CREATEROLE"))
        .await;
    env.look_again("weak").await;
    env.ready("weak").await;
    assert_eq!(
        env.plans_of("weak").await.len(),
        1,
        "a failed plan is tried again, not made again"
    );
}

/// A role that owns something is not dropped.
#[tokio::test]
async fn an_unsafe_drop_is_refused() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("old");
    env.database
        .execute(&format!(
            "CREATE ROLE {role}; CREATE TABLE t (n int); ALTER TABLE t OWNER TO {role}"
        ))
        .await;
    env.policy("drops", json!({ "retirements": [{ "role": role }] }))
        .await;
    env.condition("drops", "Ready", "False", "UnsafeRoleDrops").await;
    env.event("drops", "UnsafeRoleDropsBlocked").await;
    assert!(env.has_role(&role).await);
    env.policy(
        "drops",
        json!({ "retirements": [{ "role": role, "drop_owned": true }] }),
    )
    .await;
    env.ready("drops").await;
    assert!(!env.has_role(&role).await);
}

/// The object of a grant must exist; once it does, the policy continues.
#[tokio::test]
async fn a_missing_object_is_named() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy(
        "early",
        json!({
            "interval": "1h", "roles": [{ "name": role }],
            "grants": [{ "role": role, "privileges": ["SELECT"],
                         "object": { "type": "table", "schema": "public", "name": "later" } }],
        }),
    )
    .await;
    let policy = env
        .condition("early", "Ready", "False", "MissingDatabaseObject")
        .await;
    assert!(message(&policy, "Ready").contains("later"));
    env.event("early", "MissingDatabaseObject").await;
    assert!(!env.has_role(&role).await, "all or nothing");
    env.database.execute("CREATE TABLE public.later (n int)").await;
    env.look_again("early").await;
    env.ready("early").await;
}

/// A policy that names another database than the connected one is refused.
#[tokio::test]
async fn another_database_is_refused() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy(
        "abroad",
        json!({
            "roles": [{ "name": role }],
            "grants": [{ "role": role, "privileges": ["CONNECT"], "object": { "type": "database", "name": "elsewhere" } }],
        }),
    )
    .await;
    let policy = env
        .condition("abroad", "Ready", "False", "InvalidDatabaseTarget")
        .await;
    assert!(message(&policy, "Ready").contains("elsewhere"));
    assert!(!env.has_role(&role).await);
}

/// `requirePhysicalIdentity`: a server that does not report its identity is not changed.
#[tokio::test]
async fn a_server_without_a_name_is_refused_on_request() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let login = env.role("login");
    env.database
        .execute(&format!(
            "CREATE ROLE {login} LOGIN CREATEROLE PASSWORD 'x'; \
             REVOKE EXECUTE ON FUNCTION pg_catalog.pg_control_system() FROM PUBLIC"
        ))
        .await;
    let url = env.url_through(&env.database.url_of(&login, "x"));
    env.secret("db", json!({ "DATABASE_URL": url })).await;
    env.policy(
        "strict",
        json!({ "interval": "1h", "connection": { "requirePhysicalIdentity": true }, "roles": [{ "name": env.role("app") }] }),
    )
    .await;
    env.condition("strict", "Ready", "False", "TargetIdentityBlocked")
        .await;
    env.policy(
        "strict",
        json!({ "interval": "1h", "roles": [{ "name": env.role("app") }] }),
    )
    .await;
    env.ready("strict").await;
}

/// An unreachable server is retried and counted, and the policy recovers.
#[tokio::test]
async fn a_lost_server_is_retried() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let url = "postgres://postgres:x@127.0.0.1:1/none";
    env.secret("db", json!({ "DATABASE_URL": url })).await;
    env.policy(
        "lost",
        json!({ "interval": "1h", "roles": [{ "name": env.role("app") }] }),
    )
    .await;
    env.condition("lost", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    wait::eventually(WAIT_TIMEOUT, "retries", async || {
        env.get("lost").await.status.unwrap().transient_failure_count >= 3
    })
    .await;
    env.database_secret().await;
    let policy = env.ready("lost").await;
    assert_eq!(policy.status.unwrap().transient_failure_count, 0);
}
