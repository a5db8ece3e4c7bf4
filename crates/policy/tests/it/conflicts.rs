//! Policies that conflict, and policies that do not.

use kube::ResourceExt;
use serde_json::json;
use stanchion_testkit::wait;

use super::bed::{Bed, PATIENCE, message};

/// Disjoint policies of one database keep working while the Secret that they share changes.
#[tokio::test]
async fn disjoint_policies_share_a_database_and_a_secret() {
    const MANY: usize = 4;
    let bed = Bed::new().await;
    let operator = bed.operator().await;
    bed.database_secret().await;
    let name = |n: usize| format!("disjoint-{n}");
    for n in 0..MANY {
        let spec = json!({ "interval": "1h", "schemas": [{ "name": bed.role(&format!("s{n}")) }], "roles": [{ "name": bed.role(&format!("r{n}")) }] });
        bed.policy(&name(n), spec).await;
    }
    for n in 0..MANY {
        bed.ready(&name(n)).await;
    }
    for round in 0..3 {
        let passes = operator.passes();
        let url = format!("{}&connect_timeout={}", bed.url(), 10 + round);
        bed.secret("db", json!({ "DATABASE_URL": url })).await;
        wait::eventually(PATIENCE, "all are woken", async || {
            operator.passes() >= passes + MANY as u64
        })
        .await;
    }
    bed.secret(
        "db",
        json!({ "DATABASE_URL": "postgres://nobody:x@127.0.0.1:1/none" }),
    )
    .await;
    for n in 0..MANY {
        bed.condition(&name(n), "Ready", "False", "DatabaseConnectionFailed")
            .await;
    }
    bed.database_secret().await;
    for n in 0..MANY {
        bed.ready(&name(n)).await;
    }
}

/// Across namespaces and Secrets the younger policy waits and names the older one, which keeps working.
#[tokio::test]
async fn across_namespaces_the_younger_policy_waits() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    // Another address of the same server.
    let road = bed.url().replace("127.0.0.1", "localhost");
    bed.secret_in(&bed.other, "db", json!({ "DATABASE_URL": road }))
        .await;
    let (shared, free) = (bed.role("shared"), bed.role("free"));
    let spec = |role: &str| json!({ "interval": "1h", "roles": [{ "name": role, "comment": "ours" }] });
    bed.policy("first", spec(&shared)).await;
    bed.ready("first").await;
    bed.policy_in(&bed.other, "second", spec(&shared)).await;
    let second = bed
        .condition_in(&bed.other, "second", "Conflict", "True", "ConflictingPolicy")
        .await;
    assert!(message(&second, "Conflict").contains(&format!("{}/first", bed.namespace)));
    assert!(message(&second, "Conflict").contains(&shared));
    assert!(message(&second, "Conflict").contains("waits for it"));
    // The older one is reconciled as before.
    let comment = |text: &str| json!({ "interval": "1h", "roles": [{ "name": shared, "comment": text }] });
    bed.policy("first", comment("changed")).await;
    bed.ready("first").await;
    wait::eventually(PATIENCE, "the change", async || {
        let sql =
            format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{shared}'");
        bed.database.scalar(&sql).await.as_deref() == Some("changed")
    })
    .await;
    bed.policy_in(&bed.other, "second", spec(&free)).await;
    bed.condition_in(&bed.other, "second", "Ready", "True", "Reconciled")
        .await;
    bed.ready("first").await;
    assert!(bed.has_role(&free).await);
}

/// A login without privileges, in a policy that only observes, declares what another namespace manages: it does not
/// count.
#[tokio::test]
async fn a_login_without_rights_blocks_nobody() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let stranger = bed.role("stranger");
    bed.database
        .execute(&format!(
            "CREATE ROLE {stranger} LOGIN PASSWORD 'stranger-stranger'"
        ))
        .await;
    let url = bed.url_through(&bed.database.url_of(&stranger, "stranger-stranger"));
    bed.secret_in(&bed.other, "db", json!({ "DATABASE_URL": url }))
        .await;
    bed.database_secret().await;
    for mode in ["observe", "apply"] {
        let role = bed.role(mode);
        let spec = |mode: &str| json!({ "interval": "1h", "mode": mode, "roles": [{ "name": role }] });
        bed.policy_in(&bed.other, mode, spec(mode)).await;
        wait::eventually(PATIENCE, "a look at the stranger's", async || {
            let policy = bed.get_in(&bed.other, mode).await;
            policy.status.is_some_and(|status| !status.conditions.is_empty())
        })
        .await;
        bed.policy(mode, spec("apply")).await;
        bed.ready(mode).await;
        assert!(bed.has_role(&role).await, "{mode}");
    }
}

/// After a restart neither is applied before it knows of the other.
#[tokio::test]
async fn a_conflict_survives_a_restart() {
    let bed = Bed::new().await;
    let first = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("shared");
    let spec = |comment: &str| json!({ "interval": "1h", "roles": [{ "name": role, "comment": comment }] });
    bed.policy("one", spec("one")).await;
    bed.ready("one").await;
    bed.policy("two", spec("two")).await;
    for name in ["one", "two"] {
        bed.condition(name, "Conflict", "True", "ConflictingPolicy").await;
    }
    first.kill().await;
    let writes = bed.sql_writes();
    let second = bed.operator().await;
    wait::eventually(PATIENCE, "passes", async || second.passes() >= 2).await;
    second.idle().await;
    assert_eq!(bed.sql_writes(), writes);
    // A deleted policy does not conflict.
    bed.delete("one").await;
    bed.ready("two").await;
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    assert_eq!(bed.one(&comment).await, "two");
}

/// One policy defines a role, another only grants to it.
#[tokio::test]
async fn granting_to_anothers_role_is_no_conflict() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let (role, schema) = (bed.role("app"), bed.role("s"));
    bed.policy("defines", json!({ "roles": [{ "name": role }] }))
        .await;
    bed.ready("defines").await;
    bed.policy(
        "grants",
        json!({
            "schemas": [{ "name": schema }],
            "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": schema } }],
        }),
    )
    .await;
    let policy = bed.ready("grants").await;
    bed.look_again("defines").await;
    bed.ready("defines").await;
    assert_eq!(policy.name_any(), "grants");
    let has = format!("SELECT has_schema_privilege('{role}', '{schema}', 'USAGE')::text");
    assert_eq!(bed.one(&has).await, "true");
}
