//! Suspend, plan, annotations, and the output of `kubectl`.

use serde_json::json;
use stanchion_api::user::Phase;

use super::test_env::{TestEnv, any, condition, role_name};

/// `mode: Plan` shows redacted statements and runs none; the same plan has the same hash, independent of salts.
#[tokio::test]
async fn a_plan_is_shown_and_not_run() {
    let env = TestEnv::new(any()).await;
    let (role, operator) = (role_name(), env.operator().await);
    let made = format!("{role}_db");
    env.password("alice", "canary-in-a-plan").await;
    let request = |mode: &str| {
        json!({
            "mode": mode, "database": made, "privileges": ["CONNECT", "READ"],
            "createDatabase": { "enabled": true, "schemas": ["app"] }, "role": { "parameters": { "work_mem": "1MB" } },
        })
    };
    env.user("alice", &role, request("Plan")).await;
    let user = env.condition("alice", "Ready", "False", "Planned").await;
    let plan = user.status.clone().unwrap().plan.unwrap();
    // The oid and the seal depend on the key.
    let known = |line: &str| {
        let line = line.split(" OID ").next().unwrap().replace(&role, "ROLE");
        line.split(" v1.").next().unwrap().to_owned()
    };
    let sql: Vec<String> = plan.sql.iter().map(|line| known(line)).collect();
    let sql = sql
        .join("\n")
        .replace(&env.namespace, "NS")
        .replace(&user.metadata.uid.clone().unwrap(), "UID");
    insta::assert_snapshot!(sql, @r#"
    CREATE ROLE "ROLE" LOGIN PASSWORD '[redacted]'
    COMMENT ON ROLE "ROLE" IS '[stanchion PostgresUser NS/alice UID created
    ALTER ROLE "ROLE" SET "work_mem" TO '1MB'
    CREATE DATABASE "ROLE_db"
    -- in database "ROLE_db"
    COMMENT ON DATABASE "ROLE_db" IS '[stanchion PostgresUser NS/alice UID created
    CREATE SCHEMA IF NOT EXISTS "app"
    GRANT CONNECT ON DATABASE "ROLE_db" TO "ROLE"
    GRANT USAGE ON SCHEMA "app" TO "ROLE"
    GRANT SELECT ON ALL TABLES IN SCHEMA "app" TO "ROLE"
    ALTER DEFAULT PRIVILEGES FOR ROLE "postgres" IN SCHEMA "app" GRANT SELECT ON TABLES TO "ROLE"
    GRANT SELECT ON ALL SEQUENCES IN SCHEMA "app" TO "ROLE"
    ALTER DEFAULT PRIVILEGES FOR ROLE "postgres" IN SCHEMA "app" GRANT SELECT ON SEQUENCES TO "ROLE"
    "#);
    let hash = plan.hash.unwrap();
    assert_eq!(hash.len(), 32);
    assert!(!env.has_role(&role).await);
    assert_eq!(env.sql_writes(), [] as [String; 0]);
    let before = env.users().get("alice").await.unwrap().metadata.resource_version;
    env.look_again(&operator, "alice").await;
    let again = env.users().get("alice").await.unwrap();
    assert_eq!(again.status.unwrap().plan.unwrap().hash, Some(hash));
    assert_ne!(before, None);

    env.user("alice", &role, request("Apply")).await;
    let user = env.ready("alice").await;
    assert_eq!(user.status.unwrap().plan, None);
    env.user("alice", &role, request("Plan")).await;
    let user = env.condition("alice", "Ready", "False", "Planned").await;
    assert_eq!(user.status.unwrap().plan.unwrap().sql, [] as [String; 0]);
}

/// A suspended object changes nothing, reports that, and can be deleted.
#[tokio::test]
async fn a_suspended_object_is_left_alone() {
    let env = TestEnv::new(any()).await;
    let (role, operator) = (role_name(), env.operator().await);
    env.password("alice", "p").await;
    env.user("alice", &role, json!({})).await;
    env.ready("alice").await;
    let writes = env.sql_writes().len();
    let request = json!({ "suspend": true, "privileges": ["ALL"], "role": { "connectionLimit": 1 } });
    env.user("alice", &role, request.clone()).await;
    let user = env.condition("alice", "Reconciling", "False", "Suspended").await;
    assert_eq!(user.status.unwrap().phase, Some(Phase::Suspended));
    env.password("alice", "other").await;
    env.look_again(&operator, "alice").await;
    assert_eq!(env.sql_writes().len(), writes);
    assert!(env.logs_in(&role, "p").await);
    let mut awake = request;
    awake["suspend"] = json!(false);
    env.user("alice", &role, awake.clone()).await;
    let user = env.ready("alice").await;
    assert_eq!(user.status.unwrap().phase, Some(Phase::Ready));
    assert_eq!(env.attribute(&role, "rolconnlimit").await, "1");
    awake["suspend"] = json!(true);
    env.user("alice", &role, awake).await;
    env.condition("alice", "Reconciling", "False", "Suspended").await;
    env.delete("alice").await;
    env.gone("alice").await;
    assert!(!env.has_role(&role).await);
}

/// A24: `kubectl wait` returns only after the change is applied, and `kubectl get pguser` shows the guide's columns.
#[tokio::test]
async fn kubectl_understands_it() {
    let env = TestEnv::new(any()).await;
    let Some(kubectl) = env.cluster.kubectl() else {
        return;
    };
    let (role, _operator) = (role_name(), env.operator().await);
    let database = env.database.name();
    env.password("alice", "p").await;
    for limit in 1..=3 {
        env.user("alice", &role, json!({ "role": { "connectionLimit": limit } }))
            .await;
        let wait = [
            "wait",
            "-n",
            &env.namespace,
            "pguser/alice",
            "--for=condition=Ready",
            "--timeout=60s",
        ];
        kubectl.run(&wait).await.unwrap();
        assert_eq!(env.attribute(&role, "rolconnlimit").await, limit.to_string());
    }
    let table = kubectl
        .run(&["get", "-n", &env.namespace, "pguser", "-o", "wide"])
        .await
        .unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "NAME",
            "USERNAME",
            "DATABASE",
            "PHASE",
            "READY",
            "CONNECTED",
            "MESSAGE",
            "AGE"
        ]
    );
    assert_eq!(
        rows[1][..6],
        ["alice", role.as_str(), database, "Ready", "True", "True"]
    );
    let user = env.users().get("alice").await.unwrap();
    assert_eq!(
        condition(&user, "Stalled"),
        Some(("False".into(), "Settled".into()))
    );
    env.event("alice", "UserCreated").await;
}
