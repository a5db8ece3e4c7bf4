//! A policy from its creation to its last change.

use serde_json::json;

use super::test_env::{TestEnv, WAIT_TIMEOUT, condition};
use stanchion_testkit::postgres::extremes;
use stanchion_testkit::wait;

/// The basic case: the original's sample.
#[tokio::test]
async fn a_policy_becomes_roles_and_privileges() {
    for version in extremes() {
        let env = TestEnv::on(version).await;
        let _operator = env.operator().await;
        env.database_secret().await;
        let (owner, app) = (env.role("owner"), env.role("app"));
        let schema = env.role("inventory");
        env.policy(
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
        let policy = env.ready("basic").await;
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
        assert!(env.has_role(&app).await);
        let member = format!("SELECT pg_has_role('{app}', '{schema}-editor', 'MEMBER')::text");
        assert_eq!(env.one(&member).await, "true");
        let plans = env.plans_of("basic").await;
        assert_eq!(plans.len(), 1);
        let plan = plans[0].status.clone().unwrap();
        assert_eq!(plan.phase.as_str(), "Applied");
        assert!(plan.sql_inline.unwrap().contains("CREATE ROLE"));
        env.event("basic", "ApplySucceeded").await;
        env.event("basic", "Reconciled").await;
    }
}

/// Drift is corrected at the interval, each time.
#[tokio::test]
async fn drift_is_repaired_again_and_again() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy(
        "drift",
        json!({ "interval": "1s", "roles": [{ "name": role, "login": true }] }),
    )
    .await;
    env.ready("drift").await;
    for _ in 0..2 {
        env.database.execute(&format!("ALTER ROLE {role} CREATEDB")).await;
        let sql = format!("SELECT rolcreatedb::text FROM pg_roles WHERE rolname = '{role}'");
        wait::eventually(WAIT_TIMEOUT, "the repair", async || {
            env.one(&sql).await == "false"
        })
        .await;
    }
    wait::eventually(WAIT_TIMEOUT, "three plans", async || {
        env.plans_of("drift").await.len() == 3
    })
    .await;
    env.ready("drift").await;
}

/// `reconcile.pgroles.io/requestedAt` requests a reconcile long before the interval, and the status confirms it.
#[tokio::test]
async fn a_look_can_be_asked_for() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy("asked", json!({ "interval": "24h", "roles": [{ "name": role }] }))
        .await;
    env.ready("asked").await;
    env.database.execute(&format!("ALTER ROLE {role} CREATEDB")).await;
    let status = env.look_again("asked").await.status.unwrap();
    let sql = format!("SELECT rolcreatedb::text FROM pg_roles WHERE rolname = '{role}'");
    assert_eq!(env.one(&sql).await, "false");
    assert_eq!(
        status.last_handled_reconcile_at,
        status.last_attempted_reconcile_at
    );
}

/// A changed spec is applied at once, and reported.
#[tokio::test]
async fn a_changed_spec_is_applied() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let (one, two) = (env.role("one"), env.role("two"));
    env.policy("grows", json!({ "roles": [{ "name": one }] })).await;
    env.ready("grows").await;
    env.policy("grows", json!({ "roles": [{ "name": one }, { "name": two }] }))
        .await;
    env.ready("grows").await;
    assert!(env.has_role(&two).await);
    env.policy(
        "grows",
        json!({ "roles": [{ "name": one }], "retirements": [{ "role": two }] }),
    )
    .await;
    env.ready("grows").await;
    assert!(!env.has_role(&two).await);
}

/// A suspended policy changes nothing; a resumed one catches up.
#[tokio::test]
async fn a_suspended_policy_does_nothing() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    let spec = |suspend: bool| json!({ "suspend": suspend, "roles": [{ "name": role }] });
    env.policy("still", spec(true)).await;
    env.condition("still", "Paused", "True", "Suspended").await;
    env.event("still", "Suspended").await;
    assert!(!env.has_role(&role).await);
    env.policy("still", spec(false)).await;
    let policy = env.ready("still").await;
    assert_eq!(
        condition(&policy, "Paused"),
        Some(("False".into(), "Active".into()))
    );
    assert!(env.has_role(&role).await);
}

/// The three reconciliation modes, on a database that somebody else has used.
#[tokio::test]
async fn the_mode_decides_what_is_taken() {
    for (mode, kept) in [("additive", true), ("adopt", false), ("authoritative", false)] {
        let env = TestEnv::new().await;
        let _operator = env.operator().await;
        env.database_secret().await;
        let role = env.role("app");
        env.database
            .execute(&format!(
                "CREATE ROLE {role}; CREATE SCHEMA s; GRANT CREATE ON SCHEMA s TO {role}"
            ))
            .await;
        env.policy(
            "moded",
            json!({
                "reconciliation_mode": mode, "roles": [{ "name": role }],
                "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": "s" } }],
            }),
        )
        .await;
        env.ready("moded").await;
        let has = async |privilege: &str| {
            env.one(&format!(
                "SELECT has_schema_privilege('{role}', 's', '{privilege}')::text"
            ))
            .await
                == "true"
        };
        assert!(has("USAGE").await);
        assert_eq!(has("CREATE").await, kept, "{mode}");
    }
}

/// A policy manages what it names. What it names no longer stays, and the status says so; an exclusive role loses it.
#[tokio::test]
async fn what_a_policy_no_longer_names_is_reported() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let (role, group, owner) = (env.role("app"), env.role("group"), env.role("owner"));
    env.database
        .execute(&format!(
            "CREATE ROLE {group}; CREATE ROLE {owner}; CREATE SCHEMA s"
        ))
        .await;
    let named = json!({
        "roles": [{ "name": role }],
        "memberships": [{ "role": group, "members": [{ "name": role }] }],
        "default_privileges": [{
            "owner": owner, "schema": "s", "grant": [{ "role": role, "privileges": ["SELECT"], "on_type": "table" }],
        }],
    });
    env.policy("narrowed", named).await;
    let unmanaged = "UnmanagedPrivileges";
    let policy = env.ready("narrowed").await;
    assert_eq!(condition(&policy, unmanaged), None);

    env.policy("narrowed", json!({ "roles": [{ "name": role }] }))
        .await;
    let policy = env
        .condition("narrowed", unmanaged, "True", "HeldElsewhere")
        .await;
    let conditions = policy.status.unwrap().conditions;
    let message = &conditions
        .iter()
        .find(|one| one.type_ == unmanaged)
        .unwrap()
        .message;
    assert!(message.contains(&group), "{message}");
    assert!(message.contains("in schema \"s\""), "{message}");

    env.policy(
        "narrowed",
        json!({ "roles": [{ "name": role, "exclusive": true }] }),
    )
    .await;
    let policy = env.ready("narrowed").await;
    assert_eq!(condition(&policy, unmanaged), None);
    let held = format!(
        "SELECT (pg_has_role('{role}', '{group}', 'MEMBER') OR EXISTS (SELECT FROM pg_default_acl))::text"
    );
    assert_eq!(env.one(&held).await, "false");
}

/// Profiles from a `ConfigMap`: a change enqueues the policies that use them.
#[tokio::test]
async fn shared_profiles_are_followed() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let schema = env.role("shop");
    env.policy(
        "shares",
        json!({
            "profilesFrom": [{ "configMapKeyRef": { "name": "shared", "key": "profiles" } }],
            "schemas": [{ "name": schema, "profiles": ["reader"] }],
        }),
    )
    .await;
    env.condition("shares", "Ready", "False", "ProfilesMissing").await;
    let profiles = async |privilege: &str| {
        let text = format!("reader: {{grants: [{{privileges: [{privilege}], object: {{type: schema}}}}]}}");
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" }, "data": { "profiles": text } });
        let params = kube::api::PatchParams::apply("test").force();
        env.config_maps()
            .patch("shared", &params, &kube::api::Patch::Apply(&map))
            .await
            .unwrap();
    };
    profiles("USAGE").await;
    env.ready("shares").await;
    profiles("USAGE, CREATE").await;
    let sql = format!("SELECT has_schema_privilege('{schema}-reader', '{schema}', 'CREATE')::text");
    wait::eventually(WAIT_TIMEOUT, "the new profile", async || {
        env.one(&sql).await == "true"
    })
    .await;
}
