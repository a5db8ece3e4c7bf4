//! Drift: corrected, reported or ignored.

use serde_json::json;
use stanchion_api::user::Phase;

use super::test_env::{TestEnv, any, condition, message, role_name};

fn so(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}

/// A13: `Correct` corrects drift within the interval, and reports it.
#[tokio::test]
async fn drift_is_put_right_and_named() {
    TestEnv::on_each_kind(async |env| {
        let (role, _operator) = (role_name(), env.operator().await);
        let database = env.database.name();
        env.password("alice", "secret").await;
        let request = json!({
            "driftPolicy": { "interval": "1s" },
            "role": { "connectionLimit": 5, "parameters": { "work_mem": "3MB" } },
        });
        env.user("alice", &role, request).await;
        let user = env.ready("alice").await;
        assert_eq!(condition(&user, "Drifted"), Some(so("False", "InSync")));
        assert!(user.status.unwrap().drift.is_none());

        for (by_hand, query, value, word) in [
            (
                format!("ALTER ROLE {role} CONNECTION LIMIT 1"),
                format!("SELECT rolconnlimit FROM pg_roles WHERE rolname = '{role}'"),
                "5".to_owned(),
                "connectionLimit",
            ),
            (
                format!("REVOKE CONNECT ON DATABASE {database} FROM {role}"),
                format!(
                    "SELECT count(*) FROM pg_database, aclexplode(datacl) a WHERE datname = '{database}' AND a.grantee = '{role}'::regrole"
                ),
                "1".to_owned(),
                "CONNECT on database",
            ),
            (
                format!("ALTER ROLE {role} SET work_mem TO '9MB'"),
                format!("SELECT setconfig::text FROM pg_db_role_setting WHERE setrole = '{role}'::regrole"),
                "{work_mem=3MB}".to_owned(),
                "parameter work_mem",
            ),
        ] {
            env.database.execute(&by_hand).await;
            env.becomes(&query, &value).await;
            let user = env
                .until("alice", |user| message(user, "Drifted").contains(word))
                .await;
            assert_eq!(condition(&user, "Drifted"), Some(so("False", "Corrected")));
            let drift = user.status.unwrap().drift.unwrap();
            assert!(drift.detected.iter().any(|what| what.contains(word)), "{drift:?}");
            assert!(drift.last_checked.is_some());
        }
        env.event("alice", "DriftCorrected").await;

        if env.sees_passwords() {
            env.database
                .execute(&format!("ALTER ROLE {role} PASSWORD 'stolen'"))
                .await;
            env.until("alice", |user| message(user, "Drifted").contains("password"))
                .await;
            assert!(env.logs_in(&role, "secret").await);
            assert!(!env.logs_in(&role, "stolen").await);
        }

        env.database
            .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
            .await;
        env.until("alice", |user| {
            message(user, "Drifted").contains(&format!("role {role}"))
        })
        .await;
        assert!(env.logs_in(&role, "secret").await);
    })
    .await;
}

/// A13: `Report` reports drift and leaves it; a new spec and a new password are applied nevertheless.
#[tokio::test]
async fn drift_is_reported_and_left() {
    TestEnv::on_each_kind(async |env| {
        let (role, operator) = (role_name(), env.operator().await);
        let database = env.database.name();
        env.password("alice", "secret").await;
        let request = json!({
            "driftPolicy": { "mode": "Report" }, "role": { "connectionLimit": 5 },
            "credentialsSecret": { "name": "alice-credentials" },
        });
        env.user("alice", &role, request.clone()).await;
        env.ready("alice").await;
        let limit = format!("SELECT rolconnlimit FROM pg_roles WHERE rolname = '{role}'");

        env.database
            .execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 1"))
            .await;
        env.look_again(&operator, "alice").await;
        let user = env.condition("alice", "Drifted", "True", "ChangedByHand").await;
        assert!(message(&user, "Drifted").contains("connectionLimit"));
        assert_eq!(condition(&user, "Ready"), Some(so("True", "UserCreated")));
        assert_eq!(condition(&user, "PrivilegesSynced"), Some(so("True", "Granted")));
        assert_eq!(condition(&user, "PasswordSynced"), Some(so("True", "Synced")));
        assert!(
            env.event("alice", "ChangedByHand")
                .await
                .contains("connectionLimit")
        );
        assert_eq!(env.one(&limit).await, "1");

        env.database
            .execute(&format!(
                "REVOKE CONNECT ON DATABASE {database} FROM {role}; ALTER ROLE {role} PASSWORD 'x'"
            ))
            .await;
        // The credentials Secret is restored in any case.
        env.secrets()
            .delete("alice-credentials", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        env.until("alice", |user| {
            let synced = |kind| condition(user, kind) != Some(so("False", "Drifted"));
            !synced("PrivilegesSynced") && synced("PasswordSynced") != env.sees_passwords()
        })
        .await;
        assert_eq!(env.values("alice-credentials").await["password"], "secret");

        // A reconcile with known drift writes nothing.
        let before = env.users().get("alice").await.unwrap().metadata.resource_version;
        let writes = env.sql_writes().len();
        env.look_again(&operator, "alice").await;
        let after = env.users().get("alice").await.unwrap();
        assert_eq!(env.sql_writes().len(), writes);
        assert_ne!(before, None);
        assert_eq!(condition(&after, "Drifted"), Some(so("True", "ChangedByHand")));

        env.password("alice", "fresh").await;
        env.until("alice", |user| {
            condition(user, "Drifted") == Some(so("False", "InSync"))
        })
        .await;
        assert!(env.logs_in(&role, "fresh").await);
        assert_eq!(env.one(&limit).await, "5");

        env.database
            .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
            .await;
        env.look_again(&operator, "alice").await;
        let user = env.condition("alice", "Ready", "False", "Drifted").await;
        assert_eq!(user.status.as_ref().unwrap().phase, Some(Phase::Failed));
        let mut more = request;
        more["role"]["connectionLimit"] = json!(6);
        env.user("alice", &role, more).await;
        env.ready("alice").await;
        assert_eq!(env.one(&limit).await, "6");
    })
    .await;
}

/// A13: `Ignore` does not check; a spec that failed to apply is still applied, and is not drift.
#[tokio::test]
async fn drift_is_ignored_until_the_spec_changes() {
    let env = TestEnv::new(any()).await;
    let (role, operator) = (role_name(), env.operator().await);
    let group = role_name();
    env.password("alice", "secret").await;
    let request = |limit: u32, member_of: serde_json::Value| {
        json!({
            "driftPolicy": { "mode": "Ignore" }, "role": { "connectionLimit": limit }, "memberOf": member_of,
        })
    };
    env.user("alice", &role, request(5, json!([]))).await;
    let user = env.ready("alice").await;
    assert_eq!(condition(&user, "Drifted"), Some(so("Unknown", "Ignored")));
    let limit = format!("SELECT rolconnlimit FROM pg_roles WHERE rolname = '{role}'");
    env.database
        .execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 1"))
        .await;
    env.look_again(&operator, "alice").await;
    assert_eq!(env.one(&limit).await, "1");

    env.user("alice", &role, request(7, json!([{ "role": group }])))
        .await;
    env.condition("alice", "Ready", "False", "RoleNotFound").await;
    env.database.execute(&format!("CREATE ROLE {group}")).await;
    env.look_again(&operator, "alice").await;
    env.ready("alice").await;
    assert_eq!(env.one(&limit).await, "7");
    let reported = env.events("alice").await;
    assert!(
        !reported.iter().any(|(reason, _)| reason == "DriftCorrected"),
        "{reported:?}"
    );
}
