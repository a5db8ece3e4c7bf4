//! A policy from its creation to its last change.

use serde_json::json;

use super::bed::{Bed, PATIENCE, condition};
use stanchion_testkit::postgres::extremes;
use stanchion_testkit::wait;

/// The basic case: the original's sample.
#[tokio::test]
async fn a_policy_becomes_roles_and_privileges() {
    for version in extremes() {
        let bed = Bed::on(version).await;
        let _operator = bed.operator().await;
        bed.database_secret().await;
        let (owner, app) = (bed.role("owner"), bed.role("app"));
        let schema = bed.role("inventory");
        bed.policy(
            "basic",
            json!({
                "interval": "30s", "mode": "apply", "default_owner": owner,
                "profiles": {
                    "editor": {
                        "grants": [
                            { "privileges": ["USAGE"], "object": { "type": "schema" } },
                            { "privileges": ["SELECT", "INSERT"], "object": { "type": "table", "name": "*" } },
                        ],
                        "default_privileges": [{ "privileges": ["SELECT", "INSERT"], "on_type": "table" }],
                    },
                },
                "schemas": [{ "name": schema, "profiles": ["editor"] }],
                "roles": [{ "name": owner }, { "name": app, "login": true, "comment": "the application" }],
                "memberships": [{ "role": format!("{schema}-editor"), "members": [{ "name": app }] }],
            }),
        )
        .await;
        let policy = bed.ready("basic").await;
        assert_eq!(
            condition(&policy, "Drifted"),
            Some(("False".into(), "InSync".into()))
        );
        assert_eq!(
            condition(&policy, "Conflict"),
            Some(("False".into(), "NoConflict".into()))
        );
        assert_eq!(
            condition(&policy, "Reconciling"),
            Some(("False".into(), "Settled".into()))
        );
        let status = policy.status.unwrap();
        assert_eq!(
            status.owned_roles,
            [app.as_str(), &format!("{schema}-editor"), &owner]
        );
        assert_eq!(status.owned_schemas, [schema.as_str()]);
        assert_eq!(status.change_summary.unwrap().roles_created, 3);
        assert_eq!(status.observed_generation, policy.metadata.generation);
        assert!(status.last_successful_reconcile_time.is_some());
        assert!(bed.has_role(&app).await);
        let member = format!("SELECT pg_has_role('{app}', '{schema}-editor', 'MEMBER')::text");
        assert_eq!(bed.one(&member).await, "true");
        let plans = bed.plans_of("basic").await;
        assert_eq!(plans.len(), 1);
        let plan = plans[0].status.clone().unwrap();
        assert_eq!(plan.phase.as_str(), "Applied");
        assert!(plan.sql_inline.unwrap().contains("CREATE ROLE"));
        bed.event("basic", "ApplySucceeded").await;
        bed.event("basic", "Reconciled").await;
    }
}

/// Drift is corrected at the interval, each time.
#[tokio::test]
async fn drift_is_repaired_again_and_again() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy(
        "drift",
        json!({ "interval": "1s", "roles": [{ "name": role, "login": true }] }),
    )
    .await;
    bed.ready("drift").await;
    for _ in 0..2 {
        bed.database.execute(&format!("ALTER ROLE {role} CREATEDB")).await;
        let sql = format!("SELECT rolcreatedb::text FROM pg_roles WHERE rolname = '{role}'");
        wait::eventually(PATIENCE, "the repair", async || bed.one(&sql).await == "false").await;
    }
    wait::eventually(PATIENCE, "three plans", async || {
        bed.plans_of("drift").await.len() == 3
    })
    .await;
    bed.ready("drift").await;
}

/// `reconcile.pgroles.io/requestedAt` requests a reconcile long before the interval, and the status confirms it.
#[tokio::test]
async fn a_look_can_be_asked_for() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy("asked", json!({ "interval": "24h", "roles": [{ "name": role }] }))
        .await;
    bed.ready("asked").await;
    bed.database.execute(&format!("ALTER ROLE {role} CREATEDB")).await;
    let status = bed.look_again("asked").await.status.unwrap();
    let sql = format!("SELECT rolcreatedb::text FROM pg_roles WHERE rolname = '{role}'");
    assert_eq!(bed.one(&sql).await, "false");
    assert_eq!(
        status.last_handled_reconcile_at,
        status.last_attempted_reconcile_at
    );
}

/// A changed spec is applied at once, and reported.
#[tokio::test]
async fn a_changed_spec_is_applied() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let (one, two) = (bed.role("one"), bed.role("two"));
    bed.policy("grows", json!({ "roles": [{ "name": one }] })).await;
    bed.ready("grows").await;
    bed.policy("grows", json!({ "roles": [{ "name": one }, { "name": two }] }))
        .await;
    bed.ready("grows").await;
    assert!(bed.has_role(&two).await);
    bed.policy(
        "grows",
        json!({ "roles": [{ "name": one }], "retirements": [{ "role": two }] }),
    )
    .await;
    bed.ready("grows").await;
    assert!(!bed.has_role(&two).await);
}

/// A suspended policy changes nothing; a resumed one catches up.
#[tokio::test]
async fn a_suspended_policy_does_nothing() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    let spec = |suspend: bool| json!({ "suspend": suspend, "roles": [{ "name": role }] });
    bed.policy("still", spec(true)).await;
    bed.condition("still", "Paused", "True", "Suspended").await;
    bed.event("still", "Suspended").await;
    assert!(!bed.has_role(&role).await);
    bed.policy("still", spec(false)).await;
    let policy = bed.ready("still").await;
    assert_eq!(
        condition(&policy, "Paused"),
        Some(("False".into(), "Active".into()))
    );
    assert!(bed.has_role(&role).await);
}

/// The three reconciliation modes, on a database that somebody else has used.
#[tokio::test]
async fn the_mode_decides_what_is_taken() {
    for (mode, kept) in [("additive", true), ("adopt", false), ("authoritative", false)] {
        let bed = Bed::new().await;
        let _operator = bed.operator().await;
        bed.database_secret().await;
        let role = bed.role("app");
        bed.database
            .execute(&format!(
                "CREATE ROLE {role}; CREATE SCHEMA s; GRANT CREATE ON SCHEMA s TO {role}"
            ))
            .await;
        bed.policy(
            "moded",
            json!({
                "reconciliation_mode": mode, "roles": [{ "name": role }],
                "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": "s" } }],
            }),
        )
        .await;
        bed.ready("moded").await;
        let has = async |privilege: &str| {
            bed.one(&format!(
                "SELECT has_schema_privilege('{role}', 's', '{privilege}')::text"
            ))
            .await
                == "true"
        };
        assert!(has("USAGE").await);
        assert_eq!(has("CREATE").await, kept, "{mode}");
    }
}

/// Profiles from a `ConfigMap`: a change enqueues the policies that use them.
#[tokio::test]
async fn shared_profiles_are_followed() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let schema = bed.role("shop");
    bed.policy(
        "shares",
        json!({
            "profilesFrom": [{ "configMapKeyRef": { "name": "shared", "key": "profiles" } }],
            "schemas": [{ "name": schema, "profiles": ["reader"] }],
        }),
    )
    .await;
    bed.condition("shares", "Ready", "False", "ProfilesMissing").await;
    let profiles = async |privilege: &str| {
        let text = format!("reader: {{grants: [{{privileges: [{privilege}], object: {{type: schema}}}}]}}");
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" }, "data": { "profiles": text } });
        let params = kube::api::PatchParams::apply("test").force();
        bed.config_maps()
            .patch("shared", &params, &kube::api::Patch::Apply(&map))
            .await
            .unwrap();
    };
    profiles("USAGE").await;
    bed.ready("shares").await;
    profiles("USAGE, CREATE").await;
    let sql = format!("SELECT has_schema_privilege('{schema}-reader', '{schema}', 'CREATE')::text");
    wait::eventually(PATIENCE, "the new profile", async || {
        bed.one(&sql).await == "true"
    })
    .await;
}
