//! Cleanup of a role, and what happens to its objects.

use serde_json::json;
use stanchion_api::user::Phase;
use stanchion_postgres::handover::Keeper;
use stanchion_testkit::proxy::Cut;
use stanchion_testkit::{unique, wait};

use super::test_env::{TestEnv, WAIT_TIMEOUT, any, condition, role_name};

/// A database of the administrator.
async fn database(env: &TestEnv, owner: &str) -> String {
    let name = unique::name("other");
    env.database
        .execute(&format!("CREATE DATABASE {name} OWNER {owner}"))
        .await;
    name
}

/// The keeper of the namespace in a database.
async fn keeper(env: &TestEnv, database: &str) -> String {
    let oid = format!("SELECT oid FROM pg_database WHERE datname = '{database}'");
    let oid = env.server_one(&oid).await.parse().unwrap();
    Keeper::of(oid, &env.namespace).name().to_owned()
}

/// A6, A7: neither what the role owns nor its grants, also those that it passed on, block the deletion, in any
/// database; nothing is lost, every object has the right new owner; and no session is left.
#[tokio::test]
async fn a_role_with_belongings_everywhere_goes_and_they_stay() {
    TestEnv::on_every_version(async |env| {
        let (role, third) = (role_name(), role_name());
        let owner = env.admin().user().to_owned();
        let server = env.database.server();
        env.database.execute(&format!("CREATE ROLE {third}")).await;
        let (other, whole) = (database(&env, &owner).await, unique::name("whole"));
        let _operator = env.operator().await;
        env.password("erin", "secret").await;
        env.user(
            "erin",
            &role,
            json!({ "privileges": ["CONNECT", "CREATE", "WRITE"] }),
        )
        .await;
        env.ready("erin").await;

        // Objects of its own, and a grant that it passed on.
        env.database
            .execute(&format!(
                "CREATE TABLE public.given (n int); ALTER TABLE public.given OWNER TO {owner}; \
                 GRANT SELECT ON public.given TO {role} WITH GRANT OPTION; \
                 GRANT CREATE ON SCHEMA public TO {role}; \
                 SET ROLE {role}; GRANT SELECT ON public.given TO {third}; \
                 CREATE SCHEMA s; CREATE TYPE s.mood AS ENUM ('well'); CREATE TABLE s.kept (n int, m s.mood); \
                 INSERT INTO s.kept VALUES (7, 'well'); CREATE VIEW public.seen AS SELECT * FROM s.kept; \
                 CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
                 ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO {third}"
            ))
            .await;
        // Privileges in another database, its own database, and a table in that one.
        let grants = format!(
            "GRANT CREATE ON SCHEMA public TO {role}; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}; \
             SET ROLE {role}; CREATE TABLE public.elsewhere (n int)"
        );
        server.execute(&other, &grants).await;
        server
            .execute("postgres", &format!("CREATE DATABASE {whole} OWNER {role}"))
            .await;
        server
            .execute(
                &whole,
                &format!("SET ROLE {role}; CREATE TABLE public.inside (n int)"),
            )
            .await;
        let session = env.database.connect(&role, "secret").await.unwrap();

        env.delete("erin").await;
        env.gone("erin").await;
        assert!(!env.has_role(&role).await);
        assert!(
            session.simple_query("SELECT 1").await.is_err(),
            "the session has ended"
        );
        assert_eq!(env.one("SELECT n FROM s.kept").await, "7");
        let table_owner =
            |table: &str| format!("SELECT tableowner FROM pg_tables WHERE tablename = '{table}'");
        // Each database has a keeper for the namespace, and so does the role's own database.
        for (database, table) in [(env.database.name(), "kept"), (&other, "elsewhere"), (&whole, "inside")] {
            let keeper = keeper(&env, database).await;
            let found = server.scalar(database, &table_owner(table)).await;
            assert_eq!(found.as_ref(), Some(&keeper), "{table}");
        }
        let database_owner =
            format!("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = '{whole}'");
        assert_eq!(env.server_one(&database_owner).await, keeper(&env, &whole).await);
        let passed_on = format!("SELECT has_table_privilege('{third}', 'public.given', 'SELECT')");
        assert_eq!(env.one(&passed_on).await, "f", "what it passed on goes with it");
    })
    .await;
}

/// A9, C32: the database of the spec may change; privileges in the old one are revoked, and a later deletion is not
/// blocked.
#[tokio::test]
async fn a_user_that_moved_to_another_database_leaves_nothing_in_the_old_one() {
    TestEnv::on_every_version(async |env| {
        let role = role_name();
        let other = database(&env, env.admin().user()).await;
        let _operator = env.operator().await;
        env.password("fred", "secret").await;
        env.user(
            "fred",
            &role,
            json!({ "privileges": ["CONNECT", "TEMPORARY", "READ"] }),
        )
        .await;
        env.ready("fred").await;
        assert_eq!(env.words(&role, env.database.name()).await, "CONNECT,TEMPORARY");
        env.user(
            "fred",
            &role,
            json!({ "privileges": ["CONNECT", "READ"], "database": other }),
        )
        .await;
        let user = env.ready("fred").await;
        assert_eq!(
            user.status.unwrap().provisioned_database.as_deref(),
            Some(other.as_str())
        );
        assert_eq!(env.words(&role, env.database.name()).await, "");
        assert_eq!(env.words(&role, &other).await, "CONNECT");
        let left = format!(
            "SELECT count(*) FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid JOIN pg_database d ON d.oid = s.dbid \
             WHERE r.rolname = '{role}' AND d.datname = current_database()"
        );
        assert_eq!(env.one(&left).await, "0");
        env.delete("fred").await;
        env.gone("fred").await;
        assert!(!env.has_role(&role).await);
    })
    .await;
}

/// C7, A10: a role or database that was dropped by hand does not block the deletion.
#[tokio::test]
async fn cleanup_accepts_a_missing_role_or_database() {
    for (dropped, env) in ["role", "database", "both"]
        .into_iter()
        .zip(TestEnv::kinds().await)
    {
        let role = role_name();
        let _operator = env.operator().await;
        env.password("gail", "secret").await;
        env.user("gail", &role, json!({ "privileges": ["CONNECT", "READ"] }))
            .await;
        env.ready("gail").await;
        if dropped != "database" {
            env.database
                .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
                .await;
        }
        if dropped != "role" {
            let drop = format!("DROP DATABASE {} WITH (FORCE)", env.database.name());
            env.database.server().execute("postgres", &drop).await;
        }
        env.delete("gail").await;
        env.gone("gail").await;
        assert!(!env.has_role(&role).await, "{dropped}");
    }
}

/// C4, C5, A5: an unreachable server keeps the object, which goes by itself when the server is back.
#[tokio::test]
async fn an_unreachable_server_keeps_the_object() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let (proxy, _operator) = env.behind_a_proxy().await;
        env.password("hans", "secret").await;
        env.user("hans", &role, json!({})).await;
        env.ready("hans").await;
        proxy.cut(Cut::Close).await;
        proxy.forget();
        env.delete("hans").await;
        wait::eventually(WAIT_TIMEOUT, "some attempts", async || {
            proxy.seen().attempts.len() >= 6
        })
        .await;
        let user = env.users().get("hans").await.unwrap();
        assert!(user.metadata.deletion_timestamp.is_some());
        assert_eq!(user.metadata.finalizers.as_ref().map(Vec::len), Some(1));
        assert_eq!(user.status.as_ref().unwrap().phase, Some(Phase::Deleting));
        let found = condition(&user, "DatabaseConnected");
        assert_eq!(found, Some(("False".into(), "ConnectionFailed".into())));
        assert!(env.has_role(&role).await);
        proxy.restore().await;
        env.gone("hans").await;
        assert!(!env.has_role(&role).await);
    })
    .await;
}

/// C23, A12: the password's Secret may be deleted first.
#[tokio::test]
async fn cleanup_does_not_need_the_secret() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let operator = env.operator().await;
        env.password("ida", "secret").await;
        env.user("ida", &role, json!({})).await;
        env.ready("ida").await;
        env.secrets()
            .delete("ida", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        env.look_again(&operator, "ida").await;
        env.delete("ida").await;
        env.gone("ida").await;
        assert!(!env.has_role(&role).await);
    })
    .await;
}

/// A person may release a role. Then the object goes at once, without a connection to the server.
#[tokio::test]
async fn a_released_role_is_left_in_place() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let (proxy, _operator) = env.behind_a_proxy().await;
    env.password("jan", "secret").await;
    env.user("jan", &role, json!({})).await;
    env.ready("jan").await;
    proxy.cut(Cut::Refuse).await;
    env.delete("jan").await;
    wait::until(
        &env.users(),
        "jan",
        WAIT_TIMEOUT,
        |user: &stanchion_api::PostgresUser| {
            user.status.as_ref().and_then(|status| status.phase) == Some(Phase::Deleting)
        },
    )
    .await;
    let release = json!({ "metadata": { "annotations": { "db.example.com/force-release": "true" } } });
    env.patch("jan", release).await;
    env.gone("jan").await;
    assert!(env.has_role(&role).await);
}
