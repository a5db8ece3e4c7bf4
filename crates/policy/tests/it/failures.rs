//! Failures, how they are reported, and recovery.

use serde_json::json;
use stanchion_testkit::wait;

use super::bed::{Bed, PATIENCE, condition, message};

/// An invalid spec is reported, and recovers with a valid one.
#[tokio::test]
async fn an_invalid_spec_is_named() {
    let bed = Bed::new().await;
    let operator = bed.operator().await;
    bed.database_secret().await;
    bed.policy(
        "invalid",
        json!({ "schemas": [{ "name": "a", "profiles": ["no-such"] }] }),
    )
    .await;
    let policy = bed.condition("invalid", "Ready", "False", "InvalidSpec").await;
    assert!(message(&policy, "Ready").contains("no-such"));
    assert_eq!(
        condition(&policy, "Degraded"),
        Some(("True".into(), "InvalidSpec".into()))
    );
    assert_eq!(
        condition(&policy, "Stalled"),
        Some(("True".into(), "InvalidSpec".into()))
    );
    bed.event("invalid", "InvalidSpec").await;
    assert_eq!(operator.total("pgroles_invalid_spec_total"), 1);
    bed.policy(
        "invalid",
        json!({ "schemas": [], "roles": [{ "name": bed.role("app") }] }),
    )
    .await;
    bed.ready("invalid").await;
    bed.event("invalid", "Recovered").await;
}

/// A missing Secret, then a missing key, then a wrong value; fixing each enqueues the policy.
#[tokio::test]
async fn a_missing_secret_is_waited_for() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.policy(
        "waits",
        json!({ "interval": "1h", "roles": [{ "name": bed.role("app") }] }),
    )
    .await;
    bed.condition("waits", "Ready", "False", "SecretFetchFailed")
        .await;
    bed.event("waits", "SecretFetchFailed").await;
    bed.secret("db", json!({ "OTHER": "x" })).await;
    let policy = bed.condition("waits", "Ready", "False", "SecretMissing").await;
    assert!(message(&policy, "Ready").contains("DATABASE_URL"));
    bed.secret("db", json!({ "DATABASE_URL": "not a url" })).await;
    bed.condition("waits", "Ready", "False", "InvalidConnectionParams")
        .await;
    bed.database_secret().await;
    bed.ready("waits").await;
    bed.event("waits", "Recovered").await;
}

/// Changed credentials take effect: invalid ones, and valid ones again.
#[tokio::test]
async fn a_rotated_secret_is_followed() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    bed.policy(
        "rotates",
        json!({ "interval": "1h", "roles": [{ "name": bed.role("app") }] }),
    )
    .await;
    bed.ready("rotates").await;
    let wrong = bed.database.url_of("postgres", "wrong");
    bed.secret("db", json!({ "DATABASE_URL": bed.url_through(&wrong) }))
        .await;
    let policy = bed
        .condition("rotates", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    assert!(!format!("{policy:?}").contains("wrong@"));
    bed.event("rotates", "DatabaseConnectionFailed").await;
    bed.database_secret().await;
    bed.ready("rotates").await;
    bed.event("rotates", "Recovered").await;
}

/// A login that may not create roles is reported; with the privilege, the policy recovers.
#[tokio::test]
async fn insufficient_privileges_are_named() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let (login, role) = (bed.role("weak"), bed.role("app"));
    bed.database
        .execute(&format!("CREATE ROLE {login} LOGIN PASSWORD 'weak'"))
        .await;
    let url = bed.url_through(&bed.database.url_of(&login, "weak"));
    bed.secret("db", json!({ "DATABASE_URL": url })).await;
    bed.policy("weak", json!({ "interval": "1h", "roles": [{ "name": role }] }))
        .await;
    bed.condition("weak", "Ready", "False", "InsufficientPrivileges")
        .await;
    bed.event("weak", "InsufficientPrivileges").await;
    let plans = bed.plans_of("weak").await;
    assert_eq!(plans.len(), 1);
    bed.database
        .execute(&format!("ALTER ROLE {login} CREATEROLE"))
        .await;
    bed.look_again("weak").await;
    bed.ready("weak").await;
    assert_eq!(
        bed.plans_of("weak").await.len(),
        1,
        "a failed plan is tried again, not made again"
    );
}

/// A role that owns something is not dropped.
#[tokio::test]
async fn an_unsafe_drop_is_refused() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("old");
    bed.database
        .execute(&format!(
            "CREATE ROLE {role}; CREATE TABLE t (n int); ALTER TABLE t OWNER TO {role}"
        ))
        .await;
    bed.policy("drops", json!({ "retirements": [{ "role": role }] }))
        .await;
    bed.condition("drops", "Ready", "False", "UnsafeRoleDrops").await;
    bed.event("drops", "UnsafeRoleDropsBlocked").await;
    assert!(bed.has_role(&role).await);
    bed.policy(
        "drops",
        json!({ "retirements": [{ "role": role, "drop_owned": true }] }),
    )
    .await;
    bed.ready("drops").await;
    assert!(!bed.has_role(&role).await);
}

/// The object of a grant must exist; once it does, the policy continues.
#[tokio::test]
async fn a_missing_object_is_named() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy(
        "early",
        json!({
            "interval": "1h", "roles": [{ "name": role }],
            "grants": [{ "role": role, "privileges": ["SELECT"],
                         "object": { "type": "table", "schema": "public", "name": "later" } }],
        }),
    )
    .await;
    let policy = bed
        .condition("early", "Ready", "False", "MissingDatabaseObject")
        .await;
    assert!(message(&policy, "Ready").contains("later"));
    bed.event("early", "MissingDatabaseObject").await;
    assert!(!bed.has_role(&role).await, "all or nothing");
    bed.database.execute("CREATE TABLE public.later (n int)").await;
    bed.look_again("early").await;
    bed.ready("early").await;
}

/// A policy that names another database than the connected one is refused.
#[tokio::test]
async fn another_database_is_refused() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy(
        "abroad",
        json!({
            "roles": [{ "name": role }],
            "grants": [{ "role": role, "privileges": ["CONNECT"], "object": { "type": "database", "name": "elsewhere" } }],
        }),
    )
    .await;
    let policy = bed
        .condition("abroad", "Ready", "False", "InvalidDatabaseTarget")
        .await;
    assert!(message(&policy, "Ready").contains("elsewhere"));
    assert!(!bed.has_role(&role).await);
}

/// `requirePhysicalIdentity`: a server that does not report its identity is not changed.
#[tokio::test]
async fn a_server_without_a_name_is_refused_on_request() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let login = bed.role("login");
    bed.database
        .execute(&format!(
            "CREATE ROLE {login} LOGIN CREATEROLE PASSWORD 'x'; \
             REVOKE EXECUTE ON FUNCTION pg_catalog.pg_control_system() FROM PUBLIC"
        ))
        .await;
    let url = bed.url_through(&bed.database.url_of(&login, "x"));
    bed.secret("db", json!({ "DATABASE_URL": url })).await;
    bed.policy(
        "strict",
        json!({ "interval": "1h", "connection": { "requirePhysicalIdentity": true }, "roles": [{ "name": bed.role("app") }] }),
    )
    .await;
    bed.condition("strict", "Ready", "False", "TargetIdentityBlocked")
        .await;
    bed.policy(
        "strict",
        json!({ "interval": "1h", "roles": [{ "name": bed.role("app") }] }),
    )
    .await;
    bed.ready("strict").await;
}

/// An unreachable server is retried and counted, and the policy recovers.
#[tokio::test]
async fn a_lost_server_is_retried() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let url = "postgres://postgres:x@127.0.0.1:1/none";
    bed.secret("db", json!({ "DATABASE_URL": url })).await;
    bed.policy(
        "lost",
        json!({ "interval": "1h", "roles": [{ "name": bed.role("app") }] }),
    )
    .await;
    bed.condition("lost", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    wait::eventually(PATIENCE, "retries", async || {
        bed.get("lost").await.status.unwrap().transient_failure_count >= 3
    })
    .await;
    bed.database_secret().await;
    let policy = bed.ready("lost").await;
    assert_eq!(policy.status.unwrap().transient_failure_count, 0);
}
