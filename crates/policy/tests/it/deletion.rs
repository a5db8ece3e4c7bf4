//! Deletion of a policy, and the state of its database afterwards.

use serde_json::json;

use super::test_env::TestEnv;

async fn applied_policy(policy: &str) -> (TestEnv, String, String, String) {
    let env = TestEnv::new().await;
    env.database_secret().await;
    let (role, member, schema) = (env.role("app"), env.role("member"), env.role("s"));
    env.database
        .execute(&format!(
            "CREATE ROLE {member}; CREATE SCHEMA {schema}; CREATE TABLE public.t (n int)"
        ))
        .await;
    let operator = env.operator().await;
    env.policy(
        "goes",
        json!({
            "deletionPolicy": policy,
            "roles": [{ "name": role }],
            "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": schema } }],
            "memberships": [{ "role": role, "members": [{ "name": member }] }],
        }),
    )
    .await;
    env.ready("goes").await;
    // Granted by hand, outside of the policy.
    env.database
        .execute(&format!("GRANT SELECT ON public.t TO {role}"))
        .await;
    env.delete("goes").await;
    operator.kill().await;
    (env, role, member, schema)
}

async fn left(env: &TestEnv, role: &str, member: &str, schema: &str) -> (bool, bool, bool, bool) {
    let is = async |sql: String| env.one(&sql).await == "true";
    (
        env.has_role(role).await,
        is(format!(
            "SELECT has_schema_privilege('{role}', '{schema}', 'USAGE')::text"
        ))
        .await,
        is(format!(
            "SELECT pg_has_role('{member}', '{role}', 'MEMBER')::text"
        ))
        .await,
        is(format!(
            "SELECT has_table_privilege('{role}', 'public.t', 'SELECT')::text"
        ))
        .await,
    )
}

/// By default everything stays.
#[tokio::test]
async fn the_database_stays_as_it_is() {
    let (env, role, member, schema) = applied_policy("Retain").await;
    assert_eq!(
        left(&env, &role, &member, &schema).await,
        (true, true, true, true)
    );
}

/// With `deletionPolicy: Revoke`, the policy's grants are revoked, and nothing else.
#[tokio::test]
async fn deletion_revokes_what_was_granted() {
    let (env, role, member, schema) = applied_policy("Revoke").await;
    assert_eq!(
        left(&env, &role, &member, &schema).await,
        (true, false, false, true)
    );
}

/// An invalid policy, and one that never reached a database, can be deleted.
#[tokio::test]
async fn a_missing_database_does_not_block_a_deletion() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.policy(
        "broken",
        json!({ "deletionPolicy": "Revoke", "roles": [{ "name": "pg_x" }] }),
    )
    .await;
    env.condition("broken", "Ready", "False", "InvalidSpec").await;
    env.delete("broken").await;
    env.policy(
        "unreached",
        json!({ "deletionPolicy": "Revoke", "roles": [{ "name": env.role("a") }] }),
    )
    .await;
    env.condition("unreached", "Ready", "False", "SecretFetchFailed")
        .await;
    env.delete("unreached").await;
}
