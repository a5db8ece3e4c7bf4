//! Policies that conflict, and policies that do not.

use kube::ResourceExt;
use serde_json::json;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, message};

/// Disjoint policies of one database keep working while the Secret that they share changes.
#[tokio::test]
async fn disjoint_policies_share_a_database_and_a_secret() {
    const MANY: usize = 4;
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.database_secret().await;
    let name = |n: usize| format!("disjoint-{n}");
    for n in 0..MANY {
        let spec = json!({ "interval": "1h", "schemas": [{ "name": env.role(&format!("s{n}")) }], "roles": [{ "name": env.role(&format!("r{n}")) }] });
        env.policy(&name(n), spec).await;
    }
    for n in 0..MANY {
        env.ready(&name(n)).await;
    }
    for round in 0..3 {
        let passes = operator.passes();
        let url = format!("{}&connect_timeout={}", env.url(), 10 + round);
        env.secret("db", json!({ "DATABASE_URL": url })).await;
        wait::eventually(WAIT_TIMEOUT, "all are woken", async || {
            operator.passes() >= passes + MANY as u64
        })
        .await;
    }
    env.secret(
        "db",
        json!({ "DATABASE_URL": "postgres://nobody:x@127.0.0.1:1/none" }),
    )
    .await;
    for n in 0..MANY {
        env.condition(&name(n), "Ready", "False", "DatabaseConnectionFailed")
            .await;
    }
    env.database_secret().await;
    for n in 0..MANY {
        env.ready(&name(n)).await;
    }
}

/// Across namespaces and Secrets the younger policy waits and names the older one, which keeps working.
#[tokio::test]
async fn across_namespaces_the_younger_policy_waits() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    // Another address of the same server.
    let road = env.url().replace("127.0.0.1", "localhost");
    env.secret_in(&env.other, "db", json!({ "DATABASE_URL": road }))
        .await;
    let (shared, free) = (env.role("shared"), env.role("free"));
    let spec = |role: &str| json!({ "interval": "1h", "roles": [{ "name": role, "comment": "ours" }] });
    env.policy("first", spec(&shared)).await;
    env.ready("first").await;
    env.policy_in(&env.other, "second", spec(&shared)).await;
    let second = env
        .condition_in(&env.other, "second", "Conflict", "True", "ConflictingPolicy")
        .await;
    assert!(message(&second, "Conflict").contains(&format!("{}/first", env.namespace)));
    assert!(message(&second, "Conflict").contains(&shared));
    assert!(message(&second, "Conflict").contains("waits for it"));
    // The older one is reconciled as before.
    let comment = |text: &str| json!({ "interval": "1h", "roles": [{ "name": shared, "comment": text }] });
    env.policy("first", comment("changed")).await;
    env.ready("first").await;
    wait::eventually(WAIT_TIMEOUT, "the change", async || {
        let sql =
            format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{shared}'");
        env.database.scalar(&sql).await.as_deref() == Some("changed")
    })
    .await;
    env.policy_in(&env.other, "second", spec(&free)).await;
    env.condition_in(&env.other, "second", "Ready", "True", "Reconciled")
        .await;
    env.ready("first").await;
    assert!(env.has_role(&free).await);
}

/// A login without privileges, in a policy that only observes, declares what another namespace manages: it does not
/// count.
#[tokio::test]
async fn a_login_without_rights_blocks_nobody() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let stranger = env.role("stranger");
    env.database
        .execute(&format!(
            "CREATE ROLE {stranger} LOGIN PASSWORD 'stranger-stranger'"
        ))
        .await;
    let url = env.url_through(&env.database.url_of(&stranger, "stranger-stranger"));
    env.secret_in(&env.other, "db", json!({ "DATABASE_URL": url }))
        .await;
    env.database_secret().await;
    for mode in ["observe", "apply"] {
        let role = env.role(mode);
        let spec = |mode: &str| json!({ "interval": "1h", "mode": mode, "roles": [{ "name": role }] });
        env.policy_in(&env.other, mode, spec(mode)).await;
        wait::eventually(WAIT_TIMEOUT, "a look at the stranger's", async || {
            let policy = env.get_in(&env.other, mode).await;
            policy.status.is_some_and(|status| !status.conditions.is_empty())
        })
        .await;
        env.policy(mode, spec("apply")).await;
        env.ready(mode).await;
        assert!(env.has_role(&role).await, "{mode}");
    }
}

/// After a restart neither is applied before it knows of the other.
#[tokio::test]
async fn a_conflict_survives_a_restart() {
    let env = TestEnv::new().await;
    let first = env.operator().await;
    env.database_secret().await;
    let role = env.role("shared");
    let spec = |comment: &str| json!({ "interval": "1h", "roles": [{ "name": role, "comment": comment }] });
    env.policy("one", spec("one")).await;
    env.ready("one").await;
    env.policy("two", spec("two")).await;
    for name in ["one", "two"] {
        env.condition(name, "Conflict", "True", "ConflictingPolicy").await;
    }
    first.kill().await;
    let writes = env.sql_writes();
    let second = env.operator().await;
    wait::eventually(WAIT_TIMEOUT, "passes", async || second.passes() >= 2).await;
    second.idle().await;
    assert_eq!(env.sql_writes(), writes);
    // A deleted policy does not conflict.
    env.delete("one").await;
    env.ready("two").await;
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    assert_eq!(env.one(&comment).await, "two");
}

/// One policy defines a role, another only grants to it.
#[tokio::test]
async fn granting_to_anothers_role_is_no_conflict() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let (role, schema) = (env.role("app"), env.role("s"));
    env.policy("defines", json!({ "roles": [{ "name": role }] }))
        .await;
    env.ready("defines").await;
    env.policy(
        "grants",
        json!({
            "schemas": [{ "name": schema }],
            "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": schema } }],
        }),
    )
    .await;
    let policy = env.ready("grants").await;
    env.look_again("defines").await;
    env.ready("defines").await;
    assert_eq!(policy.name_any(), "grants");
    let has = format!("SELECT has_schema_privilege('{role}', '{schema}', 'USAGE')::text");
    assert_eq!(env.one(&has).await, "true");
}
