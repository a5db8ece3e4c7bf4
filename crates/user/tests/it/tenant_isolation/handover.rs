//! F2: objects of a deleted user never run with more privileges.

use serde_json::json;

use crate::test_env::{TestEnv, condition, message, role_name};

/// a2, a26: a SECURITY DEFINER function of a deleted user makes nobody a superuser, if the administrator is one; and
/// gives nobody another's role, if the administrator may only create roles.
#[tokio::test]
async fn a_function_that_was_left_behind_runs_as_nobody_stronger() {
    TestEnv::on_every_version(async |env| {
        let (mole, caller, bank) = (role_name(), role_name(), role_name());
        let den = format!("{mole}_db");
        let server = env.database.server();
        let _operator = env.operator().await;
        for (name, role, request) in [
            ("bank", &bank, json!({})),
            (
                "mole",
                &mole,
                json!({ "database": den, "privileges": ["OWNER"], "createDatabase": { "enabled": true, "owner": true } }),
            ),
            ("caller", &caller, json!({ "database": den, "privileges": ["CONNECT"] })),
        ] {
            env.password(name, "p").await;
            env.user(name, role, request).await;
            env.ready(name).await;
        }
        let session = server.connect(&mole, "p", &den).await.unwrap();
        session
            .batch_execute(
                "CREATE FUNCTION public.pwn(command text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \
                 $$ BEGIN EXECUTE command; RETURN current_user; END $$; \
                 CREATE VIEW public.peek AS SELECT rolname FROM pg_roles; GRANT SELECT ON public.peek TO PUBLIC",
            )
            .await
            .unwrap();
        drop(session);
        env.delete("mole").await;
        env.gone("mole").await;
        let reported = env.event("mole", "ObjectsDisarmed").await;
        assert!(reported.contains("function public.pwn(text)") && reported.contains("view public.peek"), "{reported}");

        let session = server.connect(&caller, "p", &den).await.unwrap();
        for command in [format!("ALTER ROLE {caller} SUPERUSER"), format!("GRANT {bank} TO {caller}")] {
            let call = format!("SELECT public.pwn('{command}')");
            assert!(session.batch_execute(&call).await.is_err(), "{command}");
        }
        let free = format!("GRANT EXECUTE ON FUNCTION public.pwn(text) TO {caller}");
        server.execute(&den, &free).await;
        let who = session.query_one("SELECT public.pwn('SELECT 1')", &[]).await.unwrap();
        assert_eq!(who.get::<_, String>(0), caller, "it runs as who calls it");
        assert_eq!(env.attribute(&caller, "rolsuper").await, "f");
    })
    .await;
}

/// F2: `reassignTo` is checked like a membership: no role of others, no powerful one.
#[tokio::test]
async fn reassign_to_must_name_a_role_of_the_namespace() {
    let env = TestEnv::new(crate::test_env::any()).await;
    let mut how = env.how().await;
    how.openings = stanchion_user::Openings::default();
    let operator = env.start(how);
    let powerful = env.group("CREATEROLE").await;
    let nobodys = env.group("").await;
    for new_owner in [
        powerful,
        nobodys,
        "postgres".to_owned(),
        "pg_read_all_data".to_owned(),
    ] {
        let role = role_name();
        let name = role.replace('_', "-");
        env.password(&name, "p").await;
        env.user(&name, &role, json!({ "onDelete": { "reassignTo": new_owner } }))
            .await;
        env.ready(&name).await;
        env.delete(&name).await;
        let user = env.condition(&name, "Ready", "False", "CleanupBlocked").await;
        assert!(
            message(&user, "Ready").contains("onDelete.reassignTo"),
            "{new_owner}"
        );
        assert!(condition(&user, "Ready").is_some());
        env.annotate(&name, "db.example.com/force-release", "true").await;
        env.gone(&name).await;
    }
    let (new_owner, role) = (role_name(), role_name());
    env.password("heir", "p").await;
    env.user("heir", &new_owner, json!({})).await;
    env.ready("heir").await;
    env.password("leaving", "p").await;
    env.user(
        "leaving",
        &role,
        json!({ "privileges": ["CONNECT", "CREATE"], "onDelete": { "reassignTo": new_owner } }),
    )
    .await;
    env.ready("leaving").await;
    env.database
        .execute(&format!("SET ROLE {role}; CREATE SCHEMA theirs"))
        .await;
    env.delete("leaving").await;
    env.gone("leaving").await;
    let owner = "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'theirs'";
    assert_eq!(env.one(owner).await, new_owner);
    drop(operator);
}

/// F2: a role that bears a keeper's name and is not what the operator makes gets nothing. It does not keep the object
/// either: another keeper takes its place.
#[tokio::test]
async fn a_false_keeper_gets_nothing() {
    let env = TestEnv::new(crate::test_env::any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    env.password("alice", "p").await;
    env.user("alice", &role, json!({ "privileges": ["CONNECT", "CREATE"] }))
        .await;
    env.ready("alice").await;
    env.database
        .execute(&format!("SET ROLE {role}; CREATE SCHEMA kept"))
        .await;
    let keeper = keeper_of(&env).await;
    env.database
        .execute(&format!("CREATE ROLE {keeper} LOGIN PASSWORD 'p'"))
        .await;
    env.delete("alice").await;
    env.gone("alice").await;
    let owner = "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'kept'";
    assert_eq!(env.one(owner).await, format!("{keeper}_2"));
    env.database.execute(&format!("DROP ROLE {keeper}")).await;
}

/// A keeper whose seal cannot be checked, since the installation's key was lost, gets nothing more and keeps no object
/// from being deleted. Where every name of a keeper is taken, the condition says which role is in the way.
#[tokio::test]
async fn a_keeper_of_a_lost_key_blocks_no_deletion() {
    let env = TestEnv::new(crate::test_env::any()).await;
    let operator = env.operator().await;
    env.password("p", "p").await;
    let (first, second) = (role_name(), role_name());
    for (name, role) in [("first", &first), ("second", &second)] {
        let spec = json!({ "privileges": ["CONNECT", "CREATE"], "passwordSecretRef": { "name": "p" } });
        env.user(name, role, spec).await;
        env.ready(name).await;
        env.database
            .execute(&format!("SET ROLE {role}; CREATE SCHEMA {name}"))
            .await;
    }
    let keeper = keeper_of(&env).await;
    let seal = "0123456789abcdef0123456789abcdef";
    let taken: Vec<String> = ["", "_2", "_3", "_4"].map(|end| format!("{keeper}{end}")).into();
    for name in &taken {
        let mark = format!(
            "[stanchion Keeper {}/- - created v1.{seal}.{seal}]",
            env.namespace
        );
        env.database
            .execute(&format!(
                "CREATE ROLE {name} NOLOGIN; COMMENT ON ROLE {name} IS '{mark}'"
            ))
            .await;
    }
    env.delete("first").await;
    let user = env.condition("first", "Ready", "False", "CleanupBlocked").await;
    assert!(message(&user, "Ready").contains(&keeper));
    env.database.execute(&format!("DROP ROLE {}", taken[3])).await;
    env.look_again(&operator, "first").await;
    env.gone("first").await;
    env.delete("second").await;
    env.gone("second").await;
    for schema in ["first", "second"] {
        let owner = format!("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = '{schema}'");
        assert_eq!(env.one(&owner).await, taken[3]);
    }
    env.database
        .execute(&format!("DROP ROLE {}, {}, {}", taken[0], taken[1], taken[2]))
        .await;
}

/// A login with ADMIN OPTION on a role makes the keepers members of it. They leave it, and keep no object from being deleted.
#[tokio::test]
async fn a_keeper_that_was_made_a_member_leaves() {
    TestEnv::on_each_kind(async |env| {
        let (group, admin, first, second) = (role_name(), role_name(), role_name(), role_name());
        let _operator = env.operator().await;
        env.password("p", "p").await;
        let from = json!({ "passwordSecretRef": { "name": "p" } });
        env.user("group", &group, from.clone()).await;
        env.ready("group").await;
        let mut member = from.clone();
        member["memberOf"] = json!([{ "role": group, "admin": true }]);
        env.user("admin", &admin, member).await;
        env.ready("admin").await;
        let keeper = keeper_of(&env).await;
        for (name, role) in [("first", &first), ("second", &second)] {
            let mut spec = from.clone();
            spec["privileges"] = json!(["CONNECT", "CREATE"]);
            env.user(name, role, spec).await;
            env.ready(name).await;
            env.database
                .execute(&format!("SET ROLE {role}; CREATE SCHEMA {name}"))
                .await;
            let roles = format!(
                "SELECT string_agg(quote_ident(rolname), ',') FROM pg_roles WHERE rolname LIKE '{keeper}%'"
            );
            let keepers = env.one(&roles).await;
            if !keepers.is_empty() {
                assert!(env.can(&admin, "p", &format!("GRANT {group} TO {keepers}")).await);
            }
            env.delete(name).await;
            env.gone(name).await;
            let owner = format!("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = '{name}'");
            let owner = env.one(&owner).await;
            assert!(owner.starts_with(&keeper), "{owner}");
            let member = format!("SELECT count(*) FROM pg_auth_members WHERE member = '{owner}'::regrole");
            assert_eq!(env.one(&member).await, "0");
        }
    })
    .await;
}

async fn keeper_of(env: &TestEnv) -> String {
    let oid = format!(
        "SELECT oid FROM pg_database WHERE datname = '{}'",
        env.database.name()
    );
    let oid = env.server_one(&oid).await.parse().unwrap();
    stanchion_postgres::handover::Keeper::of(oid, &env.namespace)
        .name()
        .to_owned()
}
