//! Privileges of a role: on databases, tables and schemas, in several databases, and in its own databases.

use serde_json::json;
use stanchion_testkit::postgres::versions;
use stanchion_testkit::{unique, wait};

use super::test_env::{TestEnv, WAIT_TIMEOUT, any, role_name};

/// Privileges on the database, and bundles in the schema `public`; those that leave the spec are revoked.
#[tokio::test]
async fn privileges_are_granted_and_revoked() {
    for version in versions() {
        let env = TestEnv::new(version).await;
        let (role, _operator) = (role_name(), env.operator().await);
        let database = env.database.name();
        env.database
            .execute("CREATE TABLE t (n int); CREATE SEQUENCE s; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE EXECUTE ON FUNCTION f() FROM PUBLIC")
            .await;
        env.password("alice", "p").await;
        env.user("alice", &role, json!({ "privileges": ["ALL"] })).await;
        env.ready("alice").await;
        assert_eq!(env.words(&role, database).await, "CONNECT,CREATE,TEMPORARY");
        assert!(!env.can(&role, "p", "SELECT FROM t").await);

        env.user("alice", &role, json!({ "privileges": ["READ"] })).await;
        env.ready("alice").await;
        assert_eq!(env.words(&role, database).await, "CONNECT");
        assert!(
            env.can(&role, "p", "SELECT FROM t; SELECT last_value FROM s")
                .await
        );
        assert!(!env.can(&role, "p", "INSERT INTO t VALUES (1)").await);
        // Future tables of the database's owner.
        env.database.execute("CREATE TABLE later (n int)").await;
        assert!(env.can(&role, "p", "SELECT FROM later").await);

        env.user("alice", &role, json!({ "privileges": ["WRITE"] })).await;
        env.ready("alice").await;
        let write =
            "INSERT INTO t VALUES (1); UPDATE t SET n = 2; DELETE FROM t; SELECT nextval('s'); SELECT f()";
        assert!(env.can(&role, "p", write).await);
        assert!(!env.can(&role, "p", "TRUNCATE t").await);
        assert!(!env.can(&role, "p", "CREATE TABLE public.own (n int)").await);

        env.user("alice", &role, json!({ "privileges": ["OWNER"] })).await;
        env.ready("alice").await;
        let own = "TRUNCATE t; CREATE TABLE public.own (n int); DROP TABLE public.own";
        assert!(env.can(&role, "p", own).await);

        // A table that lacks the privilege does not prevent its revocation on the others.
        env.database
            .execute(&format!(
                "CREATE TABLE bare (n int); REVOKE ALL ON bare FROM {role}"
            ))
            .await;
        env.user("alice", &role, json!({ "privileges": ["CONNECT", "SELECT"] }))
            .await;
        env.ready("alice").await;
        assert!(env.can(&role, "p", "SELECT FROM t; SELECT FROM bare").await);
        env.user("alice", &role, json!({ "privileges": ["CONNECT"] }))
            .await;
        let user = env.ready("alice").await;
        assert!(!env.can(&role, "p", "SELECT FROM t").await);
        assert!(!env.can(&role, "p", "SELECT f()").await);
        env.database.execute("CREATE TABLE last (n int)").await;
        assert!(!env.can(&role, "p", "SELECT FROM last").await);
        let grants = user.status.unwrap().grants;
        assert_eq!(grants.len(), 1, "{grants:?}");
    }
}

/// `databases[]`: schemas with their own privileges, created schemas, owners of future tables, extensions; a removed
/// entry is revoked.
#[tokio::test]
async fn several_databases_with_schemas() {
    let env = TestEnv::new(any()).await;
    let (role, owner) = (role_name(), env.group("").await);
    let server = env.database.server();
    let other = unique::name("other").replace('-', "_");
    server
        .execute("postgres", &format!("CREATE DATABASE {other}"))
        .await;
    server
        .execute(&other, "CREATE SCHEMA data; CREATE TABLE data.t (n int); CREATE SCHEMA closed; CREATE TABLE closed.t (n int)")
        .await;
    server
        .execute(&other, &format!("GRANT CREATE ON SCHEMA data TO {owner}"))
        .await;
    let operator = env.operator().await;
    env.password("alice", "p").await;
    let entry = json!({
        "name": other, "privileges": ["CONNECT", "READ"], "extensions": ["pgcrypto"],
        "schemas": [
            { "name": "data", "defaultPrivilegesForRoles": [owner] },
            { "name": "made", "create": true, "privileges": ["CREATE", "SELECT"] },
        ],
    });
    env.user("alice", &role, json!({ "databases": [entry] })).await;
    let user = env.ready("alice").await;
    let names: Vec<String> = user
        .status
        .unwrap()
        .databases
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert!(
        names.contains(&other) && names.contains(&env.database.name().to_owned()),
        "{names:?}"
    );
    let there = server.connect(&role, "p", &other).await.unwrap();
    there
        .batch_execute("SELECT FROM data.t; CREATE TABLE made.own (n int)")
        .await
        .unwrap();
    there.batch_execute("SELECT FROM closed.t").await.unwrap_err();
    let extension = "SELECT count(*) FROM pg_extension WHERE extname = 'pgcrypto'";
    assert_eq!(server.scalar(&other, extension).await.as_deref(), Some("1"));
    server
        .execute(
            &other,
            &format!("SET ROLE {owner}; CREATE TABLE data.later (n int)"),
        )
        .await;
    there.batch_execute("SELECT FROM data.later").await.unwrap();
    // Also future tables of the created schema's owner: it converged in one reconcile, and the next one finds nothing.
    server.execute(&other, "CREATE TABLE made.later (n int)").await;
    there.batch_execute("SELECT FROM made.later").await.unwrap();
    let writes = env.sql_writes().len();
    env.look_again(&operator, "alice").await;
    assert_eq!(env.sql_writes()[writes..], [] as [String; 0]);

    env.user("alice", &role, json!({ "databases": [] })).await;
    let user = env.ready("alice").await;
    let held = format!(
        "SELECT count(*) FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid \
         WHERE s.refobjid = '{role}'::regrole AND d.datname = '{other}' AND s.deptype = 'a'"
    );
    assert_eq!(env.one(&held).await, "0");
    assert_eq!(env.words(&role, &other).await, "");
    there.batch_execute("SELECT FROM data.t").await.unwrap_err();
    let status = user.status.unwrap();
    assert!(!status.databases.iter().any(|database| database.name == other));
    assert!(
        !status
            .grants
            .iter()
            .any(|grant| grant.database.as_deref() == Some(&other))
    );
}

/// What a third party granted stays, as far as only it may revoke it, and keeps nothing else from being changed.
#[tokio::test]
async fn grants_of_third_parties_block_no_change() {
    TestEnv::on_every_version(async |env| {
        let (role, bob, dba, group) = (role_name(), env.group("").await, env.group("").await, role_name());
        let _operator = env.operator().await;
        let admin = env.admin().user().to_owned();
        let owner = format!("SET ROLE {admin}; CREATE TABLE public.t (n int); GRANT SELECT ON public.t TO {bob} WITH GRANT OPTION");
        env.database.execute(&format!("ALTER SCHEMA public OWNER TO {admin}; {owner}")).await;
        env.password("group", "p").await;
        env.user("group", &group, json!({})).await;
        env.ready("group").await;
        env.password("alice", "first").await;
        let spec = |words: &[&str]| json!({ "privileges": words, "memberOf": [{ "role": group }] });
        env.user("alice", &role, spec(&["CONNECT", "SELECT"])).await;
        env.ready("alice").await;
        env.database
            .execute(&format!("SET ROLE {bob}; GRANT SELECT ON public.t TO {role}"))
            .await;
        env.database
            .execute(&format!("GRANT {group} TO {dba} WITH ADMIN OPTION; SET ROLE {dba}; GRANT {group} TO {role} WITH ADMIN OPTION"))
            .await;
        env.user("alice", &role, spec(&["CONNECT"])).await;
        env.ready("alice").await;
        env.password("alice", "second").await;
        wait::eventually(WAIT_TIMEOUT, "the new password", async || {
            env.logs_in(&role, "second").await
        })
        .await;
        env.ready("alice").await;
        let grantors = format!(
            "SELECT string_agg(a.grantor::regrole::text, ',') FROM pg_class, aclexplode(relacl) a \
             WHERE relname = 't' AND a.grantee = '{role}'::regrole"
        );
        assert_eq!(env.one(&grantors).await, bob, "only that of the third party is left");
        let admin_option = format!(
            "SELECT bool_or(m.admin_option) FROM pg_auth_members m WHERE m.member = '{role}'::regrole AND m.roleid = '{group}'::regrole"
        );
        if env.sees_passwords() {
            assert_eq!(env.one(&admin_option).await, "f");
        }
    })
    .await;
}

/// What the owner granted stays where the administrator's REVOKE takes its own grants, and keeps nothing else from being
/// changed: PostgreSQL revokes the grants of one grantor, and prefers the administrator to the owner.
#[tokio::test]
async fn grants_of_the_owner_block_no_change() {
    for version in versions() {
        for member in [false, true] {
            let env = TestEnv::plain(version).await;
            let (role, owner, database) = (role_name(), env.group("").await, env.database.name());
            let admin = env.admin().user().to_owned();
            let setup = format!(
                "ALTER DATABASE {database} OWNER TO {owner}; ALTER SCHEMA public OWNER TO {owner}; SET ROLE {owner}; \
                 CREATE TABLE public.t (n int); GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {admin} WITH GRANT OPTION; \
                 GRANT USAGE ON SCHEMA public TO {admin} WITH GRANT OPTION; GRANT SELECT ON public.t TO {admin} WITH GRANT OPTION"
            );
            env.database.execute(&setup).await;
            if member {
                env.database.execute(&format!("GRANT {owner} TO {admin}")).await;
            }
            let _operator = env.operator().await;
            env.password("alice", "first").await;
            let spec = |words: &[&str]| json!({ "privileges": words });
            env.user("alice", &role, spec(&["CONNECT", "SELECT"])).await;
            env.ready("alice").await;
            let given = format!(
                "SET ROLE {owner}; GRANT CONNECT ON DATABASE {database} TO {role}; GRANT USAGE ON SCHEMA public TO {role}; \
                 GRANT SELECT ON public.t TO {role}"
            );
            env.database.execute(&given).await;
            let grantors = format!(
                "SELECT concat_ws(' ', \
                   (SELECT string_agg(a.grantor::regrole::text, ',') FROM pg_database, aclexplode(datacl) a \
                    WHERE datname = '{database}' AND a.grantee = '{role}'::regrole AND a.privilege_type = 'CONNECT'), \
                   (SELECT string_agg(a.grantor::regrole::text, ',') FROM pg_namespace, aclexplode(nspacl) a \
                    WHERE nspname = 'public' AND a.grantee = '{role}'::regrole), \
                   (SELECT string_agg(a.grantor::regrole::text, ',') FROM pg_class, aclexplode(relacl) a \
                    WHERE relname = 't' AND a.grantee = '{role}'::regrole))"
            );
            env.user("alice", &role, spec(&["TEMPORARY"])).await;
            env.password("alice", "second").await;
            let what = format!("the new password on {version}, member: {member}");
            wait::eventually(WAIT_TIMEOUT, &what, async || env.logs_in(&role, "second").await).await;
            env.ready("alice").await;
            assert_eq!(env.one(&grantors).await, [owner.as_str(); 3].join(" "), "{what}");
        }
    }
}
