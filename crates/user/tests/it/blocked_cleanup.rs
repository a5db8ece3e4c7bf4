//! A cleanup that a database blocks.

use serde_json::json;
use stanchion_api::user::Phase;
use stanchion_testkit::unique;

use super::test_env::{TestEnv, message, role_name};

/// C6, A8: a database that refuses connections keeps object and role; the condition names it and the reason; retries
/// are rare, and the object goes by itself once it can.
#[tokio::test]
async fn a_database_without_connections_blocks_the_cleanup() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let server = env.database.server();
        let other = unique::name("other");
        server
            .execute("postgres", &format!("CREATE DATABASE {other}"))
            .await;
        let _operator = env.operator().await;
        env.password("pia", "secret").await;
        env.user("pia", &role, json!({})).await;
        env.ready("pia").await;
        let table = format!("CREATE TABLE public.t (n int); ALTER TABLE public.t OWNER TO {role}");
        server.execute(&other, &table).await;
        server
            .execute(
                "postgres",
                &format!("ALTER DATABASE {other} ALLOW_CONNECTIONS false"),
            )
            .await;

        env.delete("pia").await;
        let user = env.condition("pia", "Ready", "False", "CleanupBlocked").await;
        let said = message(&user, "Ready");
        for part in [role.as_str(), other.as_str(), "2BP01"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(user.status.unwrap().phase, Some(Phase::Deleting));
        assert_eq!(user.metadata.finalizers.map(|all| all.len()), Some(1));
        assert!(!env.logs_in(&role, "secret").await, "it cannot be used meanwhile");

        server
            .execute(
                "postgres",
                &format!("ALTER DATABASE {other} ALLOW_CONNECTIONS true"),
            )
            .await;
        env.gone("pia").await;
        let drops = env
            .statements()
            .iter()
            .filter(|sql| sql.contains("DROP ROLE"))
            .count();
        assert_eq!(drops, 2, "one that failed, and one that did not");
    })
    .await;
}

/// A8: the same with the object's own database.
#[tokio::test]
async fn the_own_database_may_refuse_connections() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let operator = env.operator().await;
        env.password("quin", "secret").await;
        env.user("quin", &role, json!({ "privileges": ["CONNECT", "READ"] }))
            .await;
        env.ready("quin").await;
        let name = env.database.name();
        let allow = |yes: bool| format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {yes}");
        env.database.server().execute("postgres", &allow(false)).await;
        env.delete("quin").await;
        let user = env.condition("quin", "Ready", "False", "CleanupBlocked").await;
        assert!(message(&user, "Ready").contains(name));
        env.database.server().execute("postgres", &allow(true)).await;
        env.look_again(&operator, "quin").await;
        env.gone("quin").await;
        assert!(!env.has_role(&role).await);
    })
    .await;
}

/// An adopted role stays, so nothing but this deletion revokes what it was granted in a database that refuses connections.
#[tokio::test]
async fn a_closed_database_keeps_no_grants_of_an_adopted_role() {
    TestEnv::on_each_kind(async |env| {
        let (role, other) = (env.group("LOGIN").await, unique::name("other"));
        let server = env.database.server();
        let owner = env.admin().user().to_owned();
        server
            .execute("postgres", &format!("CREATE DATABASE {other} OWNER {owner}"))
            .await;
        let operator = env.operator().await;
        env.password("ada", "secret").await;
        let spec = json!({
            "existingRolePolicy": "Adopt", "databases": [{ "name": other, "privileges": ["CONNECT", "USAGE"] }],
        });
        if !env.sees_passwords() {
            env.database
                .execute(&format!("GRANT {role} TO {owner} WITH ADMIN OPTION"))
                .await;
            server
                .execute(&other, &format!("ALTER SCHEMA public OWNER TO {owner}"))
                .await;
        }
        env.user("ada", &role, spec).await;
        env.ready("ada").await;
        let held = format!("SELECT has_schema_privilege('{role}', 'public', 'USAGE') AND EXISTS (SELECT FROM \
             pg_namespace, aclexplode(nspacl) a WHERE a.grantee = '{role}'::regrole)");
        assert_eq!(server.scalar(&other, &held).await.as_deref(), Some("t"));
        let allow = |yes: bool| format!("ALTER DATABASE {other} ALLOW_CONNECTIONS {yes}");
        // This operator has no session there.
        operator.kill().await;
        server.execute("postgres", &allow(false)).await;
        env.delete("ada").await;
        let operator = env.operator().await;
        let user = env.condition("ada", "Ready", "False", "CleanupBlocked").await;
        assert!(message(&user, "Ready").contains(&other), "{user:?}");
        server.execute("postgres", &allow(true)).await;
        env.look_again(&operator, "ada").await;
        env.gone("ada").await;
        assert_eq!(server.scalar(&other, &held).await.as_deref(), Some("f"));
        assert!(env.has_role(&role).await);
    })
    .await;
}
