//! Deletion of a policy, and the state of its database afterwards.

use serde_json::json;

use super::bed::Bed;

async fn told(policy: &str) -> (Bed, String, String, String) {
    let bed = Bed::new().await;
    bed.database_secret().await;
    let (role, member, schema) = (bed.role("app"), bed.role("member"), bed.role("s"));
    bed.database
        .execute(&format!(
            "CREATE ROLE {member}; CREATE SCHEMA {schema}; CREATE TABLE public.t (n int)"
        ))
        .await;
    let operator = bed.operator().await;
    bed.policy(
        "goes",
        json!({
            "deletionPolicy": policy,
            "roles": [{ "name": role }],
            "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": schema } }],
            "memberships": [{ "role": role, "members": [{ "name": member }] }],
        }),
    )
    .await;
    bed.ready("goes").await;
    // Granted by hand, outside of the policy.
    bed.database
        .execute(&format!("GRANT SELECT ON public.t TO {role}"))
        .await;
    bed.delete("goes").await;
    operator.kill().await;
    (bed, role, member, schema)
}

async fn left(bed: &Bed, role: &str, member: &str, schema: &str) -> (bool, bool, bool, bool) {
    let is = async |sql: String| bed.one(&sql).await == "true";
    (
        bed.has_role(role).await,
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
    let (bed, role, member, schema) = told("Retain").await;
    assert_eq!(
        left(&bed, &role, &member, &schema).await,
        (true, true, true, true)
    );
}

/// With `deletionPolicy: Revoke`, the policy's grants are revoked, and nothing else.
#[tokio::test]
async fn what_was_granted_is_taken_back() {
    let (bed, role, member, schema) = told("Revoke").await;
    assert_eq!(
        left(&bed, &role, &member, &schema).await,
        (true, false, false, true)
    );
}

/// An invalid policy, and one that never reached a database, can be deleted.
#[tokio::test]
async fn nothing_holds_up_a_deletion() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.policy(
        "broken",
        json!({ "deletionPolicy": "Revoke", "roles": [{ "name": "pg_x" }] }),
    )
    .await;
    bed.condition("broken", "Ready", "False", "InvalidSpec").await;
    bed.delete("broken").await;
    bed.policy(
        "unreached",
        json!({ "deletionPolicy": "Revoke", "roles": [{ "name": bed.role("a") }] }),
    )
    .await;
    bed.condition("unreached", "Ready", "False", "SecretFetchFailed")
        .await;
    bed.delete("unreached").await;
}
