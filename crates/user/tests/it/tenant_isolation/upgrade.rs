//! An upgrade from a version whose marks had no seal, and whose databases had no mark.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::test_env::{TestEnv, any, role_name};

/// The oid of a database in earlier versions.
fn former_oid(uid: &str, database: &str) -> u32 {
    let digest = Sha256::new()
        .chain_update(uid)
        .chain_update([0])
        .chain_update(database)
        .finalize();
    let start = digest.iter().take(4);
    1 << 31 | start.fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
}

/// Marks, databases and status as version 89a1792 wrote them: no login breaks, the marks are renewed, and everything is
/// deleted with its object.
#[tokio::test]
async fn an_upgrade_breaks_no_login() {
    let env = TestEnv::new(any()).await;
    let server = env.database.server();
    let (plain, dual, maker, adopted) = (role_name(), role_name(), role_name(), env.group("LOGIN").await);
    let made = format!("{maker}_db");
    let operator = env.operator().await;
    let users = [
        ("plain", &plain, json!({})),
        (
            "dual",
            &dual,
            json!({ "passwordSecretRef": null, "password": { "generate": {}, "rotation": { "strategy": "DualUser" } } }),
        ),
        (
            "maker",
            &maker,
            json!({ "database": made, "createDatabase": { "enabled": true, "owner": true, "deletionPolicy": "Delete" } }),
        ),
        ("adopted", &adopted, json!({ "existingRolePolicy": "Adopt" })),
    ];
    for (name, role, request) in &users {
        env.password(name, "p").await;
        env.user(name, role, request.clone()).await;
        env.ready(name).await;
    }
    operator.kill().await;
    // The state after the earlier version: marks without a seal, no proof in the status, a database without a mark that
    // its oid identifies.
    for (name, role, _) in &users {
        let uid = env.users().get(name).await.unwrap().metadata.uid.unwrap();
        let origin = if *name == "adopted" { "adopted" } else { "created" };
        let mark = format!("[stanchion PostgresUser {}/{name} {uid} {origin}]", env.namespace);
        let logins = if *name == "dual" {
            vec![format!("{role}_a"), (*role).clone()]
        } else {
            vec![(*role).clone()]
        };
        for login in logins {
            env.database
                .execute(&format!("COMMENT ON ROLE {login} IS '{mark}'"))
                .await;
        }
        let patch = Patch::Merge(json!({ "status": { "roleSeal": null } }));
        env.users()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
        if *name == "maker" {
            let oid = former_oid(&uid, &made);
            server
                .execute("postgres", &format!("DROP DATABASE {made} WITH (FORCE)"))
                .await;
            server
                .execute(
                    "postgres",
                    &format!("CREATE DATABASE {made} OWNER {role} OID {oid}"),
                )
                .await;
        }
    }
    let secret = env.values("dual-credentials").await;
    let logins = format!("'{plain}', '{dual}', '{dual}_a', '{maker}', '{adopted}'");
    let stored = format!(
        "SELECT string_agg(coalesce(rolpassword, '-'), ' ' ORDER BY rolname) FROM pg_authid WHERE rolname IN ({logins})"
    );
    let verifiers = env.one(&stored).await;
    // With the default rules, not the open ones of the test environment.
    let mut how = env.how().await;
    how.openings = stanchion_user::Openings::default();
    let operator = env.start(how);
    for (name, ..) in &users {
        env.look_again(&operator, name).await;
        env.ready(name).await;
    }
    for login in [&plain, &adopted, &maker] {
        assert!(env.logs_in(login, "p").await, "{login}");
    }
    assert_eq!(
        env.values("dual-credentials").await,
        secret,
        "the Secret stays as it is"
    );
    assert!(env.logs_in(&secret["username"], &secret["password"]).await);
    assert_eq!(env.one(&stored).await, verifiers, "no password was set again");
    let sealed = "SELECT count(*) FROM pg_roles WHERE shobj_description(oid, 'pg_authid') LIKE '%ed v1.%' AND rolname IN";
    let sealed = format!("{sealed} ({logins})");
    assert_eq!(env.one(&sealed).await, "5");
    let marked = format!(
        "SELECT shobj_description(oid, 'pg_database') LIKE '%created v1.%' FROM pg_database WHERE datname = '{made}'"
    );
    assert_eq!(env.one(&marked).await, "t");
    let status = env.users().get("adopted").await.unwrap().status.unwrap();
    assert_eq!(status.adopted, Some(true));
    for (name, ..) in &users {
        env.delete(name).await;
        env.gone(name).await;
    }
    let left = format!(
        "SELECT count(*) FROM pg_roles WHERE rolname IN ('{plain}', '{dual}', '{dual}_a', '{maker}')"
    );
    assert_eq!(env.one(&left).await, "0");
    assert!(env.has_role(&adopted).await);
    let gone = format!("SELECT count(*) FROM pg_database WHERE datname = '{made}'");
    assert_eq!(env.server_one(&gone).await, "0");
}

/// The key of the installation was lost and generated again: the objects continue, and are sealed again.
#[tokio::test]
async fn a_lost_key_breaks_no_login() {
    let mut env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("alice", "p").await;
    let made = format!("{role}_db");
    let create = json!({ "enabled": true, "owner": true, "deletionPolicy": "Delete" });
    env.user(
        "alice",
        &role,
        json!({ "database": made, "createDatabase": create }),
    )
    .await;
    env.ready("alice").await;
    operator.kill().await;
    env.key = std::sync::Arc::new(stanchion_kernel::redact::FingerprintKey::generate());
    let operator = env.operator().await;
    env.look_again(&operator, "alice").await;
    env.ready("alice").await;
    assert!(env.logs_in(&role, "p").await);
    env.delete("alice").await;
    env.gone("alice").await;
    assert!(!env.has_role(&role).await);
    let gone = format!("SELECT count(*) FROM pg_database WHERE datname = '{made}'");
    assert_eq!(env.server_one(&gone).await, "0");
}

/// An earlier version granted whatever a spec asked for in a database of the object's own, also in the schemas of the
/// server. The privileges are revoked, whether the object is refused, suspended, or has another spec by now.
#[tokio::test]
async fn an_upgrade_revokes_privileges_in_schemas_of_the_server() {
    let env = TestEnv::new(any()).await;
    let database = env.database.name();
    let operator = env.operator().await;
    let cases = [
        ("changed", json!({})),
        ("idle", json!({ "suspend": true })),
        ("wrong", json!({ "role": { "parameters": { "no name": "x" } } })),
    ];
    let roles: Vec<String> = cases.iter().map(|_| role_name()).collect();
    for ((name, _), role) in cases.iter().zip(&roles) {
        env.password(name, "p").await;
        env.user(name, role, json!({})).await;
        env.ready(name).await;
    }
    operator.kill().await;
    let reads = "SELECT rolpassword FROM pg_authid";
    for ((name, spec), role) in cases.iter().zip(&roles) {
        let given = format!(
            "GRANT SELECT ON ALL TABLES IN SCHEMA pg_catalog TO {role}; \
             GRANT EXECUTE ON ALL ROUTINES IN SCHEMA pg_catalog TO {role}"
        );
        env.database.execute(&given).await;
        let grant = |kind: &str, word: &str| json!({ "kind": kind, "database": database, "schema": "pg_catalog", "privileges": [word] });
        let status =
            json!({ "status": { "grants": [grant("Tables", "SELECT"), grant("Functions", "EXECUTE")] } });
        env.users()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
        assert!(env.can(role, "p", reads).await);
        env.patch(name, json!({ "spec": spec })).await;
    }
    let operator = env.operator().await;
    for ((name, _), role) in cases.iter().zip(&roles) {
        env.look_again(&operator, name).await;
        assert!(!env.can(role, "p", reads).await, "{name}");
        let left =
            format!("SELECT count(*) FROM pg_proc, aclexplode(proacl) a WHERE a.grantee = '{role}'::regrole");
        assert_eq!(env.one(&left).await, "0", "{name}");
        assert!(env.logs_in(role, "p").await);
    }
}
