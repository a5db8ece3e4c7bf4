//! Deletion of a policy, and the state of its database afterwards.

use kube::api::PostParams;
use serde_json::json;
use stanchion_api::PostgresPolicy;

use super::test_env::{Running, TestEnv};

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

/// Neither a policy that only observes nor one that nobody has approved has granted anything.
#[tokio::test]
async fn a_policy_that_only_observed_revokes_nothing() {
    let env = TestEnv::new().await;
    env.database_secret().await;
    let (role, missing) = (env.role("app"), env.role("missing"));
    env.database
        .execute(&format!(
            "CREATE ROLE {role}; CREATE TABLE public.t (n int); GRANT SELECT ON public.t TO {role}"
        ))
        .await;
    let _operator = env.operator().await;
    for (name, how) in [
        ("observes", json!({ "mode": "observe" })),
        ("waits", json!({ "approval": "manual" })),
    ] {
        let mut spec = json!({
            "deletionPolicy": "Revoke",
            "roles": [{ "name": role }, { "name": missing }],
            "grants": [{ "role": role, "privileges": ["SELECT"], "object": { "type": "table", "schema": "public", "name": "t" } }],
        });
        for (key, value) in how.as_object().unwrap() {
            spec[key] = value.clone();
        }
        env.policy(name, spec).await;
        env.condition(name, "Ready", "True", "Planned").await;
        env.delete(name).await;
        let has = format!("SELECT has_table_privilege('{role}', 'public.t', 'SELECT')::text");
        assert_eq!(env.one(&has).await, "true", "{name}");
    }
}

/// What another policy names stays, although the one that goes has granted it with a wildcard. That its plans are gone by then
/// changes nothing.
#[tokio::test]
async fn a_wildcard_spares_what_another_policy_names() {
    let env = TestEnv::new().await;
    env.database_secret().await;
    let role = env.role("app");
    env.database
        .execute(&format!(
            "CREATE ROLE {role}; CREATE TABLE public.kept (n int, m int); CREATE TABLE public.lost (n int); \
             CREATE TABLE public.part (n int)"
        ))
        .await;
    let _operator = env.operator().await;
    let grant =
        |object: serde_json::Value| json!([{ "role": role, "privileges": ["SELECT"], "object": object }]);
    let all = json!({ "type": "table", "schema": "public", "name": "*" });
    env.policy(
        "goes",
        json!({ "deletionPolicy": "Revoke", "planHistoryLimit": 0, "grants": grant(all) }),
    )
    .await;
    env.ready("goes").await;
    let mut named = grant(json!({ "type": "table", "schema": "public", "name": "kept" }));
    let column = grant(json!({ "type": "table", "schema": "public", "name": "part", "columns": ["n"] }));
    named.as_array_mut().unwrap().push(column[0].clone());
    env.policy("stays", json!({ "grants": named })).await;
    env.ready("stays").await;
    env.look_again("goes").await;
    for plan in env.plans_of("goes").await {
        let name = kube::ResourceExt::name_any(&plan);
        let _ = env
            .plans()
            .delete(&name, &kube::api::DeleteParams::default())
            .await;
    }
    env.delete("goes").await;
    let held = format!(
        "SELECT concat_ws(' ', has_table_privilege('{role}', 'public.kept', 'SELECT'), \
         has_table_privilege('{role}', 'public.lost', 'SELECT'), has_table_privilege('{role}', 'public.part', 'SELECT'), \
         has_column_privilege('{role}', 'public.part', 'n', 'SELECT'))"
    );
    assert_eq!(env.one(&held).await, "t f f t");
}

/// The role to which two policies grant, and an operator that has just started: `goes` is being deleted, `stays` was not reconciled.
async fn restarted(env: &TestEnv, stays: &serde_json::Value) -> (String, Running) {
    env.database_secret().await;
    let role = env.role("app");
    env.database
        .execute(&format!("CREATE ROLE {role}; CREATE TABLE public.t (n int)"))
        .await;
    let operator = env.operator().await;
    let mut goes = select(&role);
    goes["deletionPolicy"] = json!("Revoke");
    env.policy("goes", goes).await;
    env.ready("goes").await;
    env.policy("stays", stays.clone()).await;
    env.ready("stays").await;
    operator.kill().await;
    // The operator claims nothing for a spec that it cannot read, and keeps what it has claimed.
    env.patch("stays", json!({ "spec": { "interval": "soon" } }))
        .await;
    env.base.delete::<PostgresPolicy>("goes").await;
    (role, env.operator().await)
}

fn select(role: &str) -> serde_json::Value {
    let table = json!({ "type": "table", "schema": "public", "name": "t" });
    json!({ "grants": [{ "role": role, "privileges": ["SELECT"], "object": table }] })
}

async fn may_select(env: &TestEnv, role: &str) -> bool {
    let has = format!("SELECT has_table_privilege('{role}', 'public.t', 'SELECT')::text");
    env.one(&has).await == "true"
}

#[tokio::test]
async fn after_a_restart_a_deletion_spares_what_others_declare() {
    let env = TestEnv::new().await;
    let stays = select(&env.role("app"));
    let (role, _operator) = restarted(&env, &stays).await;
    env.wait().gone(&env.policies(), "goes").await;
    assert!(may_select(&env, &role).await);
}

/// The status does not remember shared profiles, so the deletion waits for the policy that uses them.
#[tokio::test]
async fn after_a_restart_a_deletion_waits_for_shared_profiles() {
    let env = TestEnv::new().await;
    let table = json!({ "type": "table", "name": "t" });
    let profiles = json!({ "app": { "grants": [{ "privileges": ["SELECT"], "object": table }] } });
    let shared = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" },
        "data": { "profiles.yaml": profiles.to_string() },
    });
    env.config_maps()
        .create(&PostParams::default(), &serde_json::from_value(shared).unwrap())
        .await
        .unwrap();
    let stays = json!({
        "profilesFrom": [{ "configMapKeyRef": { "name": "shared", "key": "profiles.yaml" } }],
        "schemas": [{ "name": "public", "role_pattern": env.role("{profile}"), "profiles": ["app"] }],
    });
    let (role, _operator) = restarted(&env, &stays).await;
    env.condition("goes", "Ready", "False", "PoliciesPending").await;
    assert!(may_select(&env, &role).await);
    env.patch("stays", json!({ "spec": { "interval": "1h" } })).await;
    env.wait().gone(&env.policies(), "goes").await;
    assert!(may_select(&env, &role).await);
}
