//! `deletionPolicy` and `onDelete`: what happens to a role and its objects.

use serde_json::{Value, json};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::unique;

use super::test_env::{TestEnv, any, message, role_name};

/// A user who owns a table with a row in it, in its own schema.
async fn owner(env: &TestEnv, name: &str, role: &str, more: Value) {
    env.password(name, "secret").await;
    env.user(name, role, more).await;
    env.ready(name).await;
    let make = format!("CREATE SCHEMA s AUTHORIZATION {role}; SET ROLE {role}; CREATE TABLE s.kept (n int)");
    env.database.execute(&make).await;
    env.database.execute("INSERT INTO s.kept VALUES (7)").await;
}

fn owner_of_kept() -> String {
    "SELECT tableowner FROM pg_tables WHERE tablename = 'kept'".into()
}

/// Retain: the role keeps everything but our mark, and another object can adopt it.
#[tokio::test]
async fn a_retained_role_works_on_and_can_be_adopted() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    owner(&env, "kim", &role, json!({ "deletionPolicy": "Retain" })).await;
    env.delete("kim").await;
    env.gone("kim").await;
    assert!(env.logs_in(&role, "secret").await);
    assert_eq!(env.words(&role, env.database.name()).await, "CONNECT");
    assert_eq!(env.one(&owner_of_kept()).await, role);
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    assert_eq!(env.one(&comment).await, "");
    env.user(
        "kim-again",
        &role,
        json!({ "passwordSecretRef": { "name": "kim" }, "existingRolePolicy": "Adopt" }),
    )
    .await;
    let user = env.ready("kim-again").await;
    assert_eq!(user.status.unwrap().adopted, Some(true));
    env.delete("kim-again").await;
    env.gone("kim-again").await;
    assert!(env.has_role(&role).await, "an adopted role is never dropped");
}

/// Disable: the role stays and cannot log in.
#[tokio::test]
async fn a_disabled_role_stays_and_cannot_log_in() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let _operator = env.operator().await;
        owner(&env, "leo", &role, json!({ "deletionPolicy": "Disable" })).await;
        let session = env.database.connect(&role, "secret").await.unwrap();
        session
            .batch_execute("BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'mine'")
            .await
            .unwrap();
        env.delete("leo").await;
        env.gone("leo").await;
        assert!(env.has_role(&role).await);
        assert!(!env.logs_in(&role, "secret").await);
        assert!(
            session.simple_query("SELECT 1").await.is_err(),
            "its sessions end"
        );
        assert_eq!(env.one(&owner_of_kept()).await, role);
    })
    .await;
}

/// A session that the spec keeps goes on, and what it makes while the role is being dropped goes to the keeper like
/// everything else.
#[tokio::test]
async fn what_is_made_during_a_deletion_is_kept() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let server = env.database.server();
    let last = format!("zz_{role}");
    server
        .execute("postgres", &format!("CREATE DATABASE {last}"))
        .await;
    let _operator = env.operator().await;
    env.password("pat", "secret").await;
    let spec = json!({
        "privileges": ["CONNECT", "READ"], "onDelete": { "terminateSessions": false },
        "databases": [{ "name": last, "privileges": ["CONNECT", "READ", "OWNER"] }],
    });
    env.database.execute("CREATE TABLE public.t (n int)").await;
    env.user("pat", &role, spec).await;
    env.ready("pat").await;
    let session = server.connect(&role, "secret", &last).await.unwrap();
    // The turn of the first database ends with this transaction.
    let holder = server
        .connect(ADMIN, ADMIN_PASSWORD, env.database.name())
        .await
        .unwrap();
    holder
        .batch_execute("BEGIN; GRANT SELECT ON public.t TO pg_monitor")
        .await
        .unwrap();
    env.delete("pat").await;
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND wait_event_type = 'Lock'",
        env.application
    );
    env.becomes(&waits, "1").await;
    session
        .batch_execute("CREATE TABLE public.kept AS SELECT 7 AS n")
        .await
        .unwrap();
    holder.batch_execute("ROLLBACK").await.unwrap();
    env.gone("pat").await;
    let owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'kept'";
    let owner = server.scalar(&last, owner).await.unwrap_or_default();
    assert!(owner.starts_with("stanchion_kept_"), "{owner}");
    drop((session, holder));
    server
        .execute("postgres", &format!("DROP DATABASE {last} WITH (FORCE)"))
        .await;
}

/// Drop: what it owns is dropped with it, except databases, which need an explicit request.
#[tokio::test]
async fn what_a_role_owns_is_dropped_only_where_that_is_asked_for() {
    let env = TestEnv::new(any()).await;
    let (role, owned) = (role_name(), unique::name("owned"));
    let _operator = env.operator().await;
    owner(
        &env,
        "mia",
        &role,
        json!({ "onDelete": { "ownedObjects": "Drop" } }),
    )
    .await;
    let server = env.database.server();
    server
        .execute("postgres", &format!("CREATE DATABASE {owned} OWNER {role}"))
        .await;
    env.delete("mia").await;
    env.gone("mia").await;
    assert!(!env.has_role(&role).await);
    assert_eq!(
        env.one("SELECT count(*) FROM pg_tables WHERE tablename = 'kept'")
            .await,
        "0"
    );
    let still_there = format!("SELECT count(*) FROM pg_database WHERE datname = '{owned}'");
    assert_eq!(env.server_one(&still_there).await, "1");
}

/// A8: Block keeps role and object while the role owns anything, changes nothing, and names the database.
#[tokio::test]
async fn a_role_that_owns_something_can_be_kept_for_it() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let operator = env.operator().await;
        owner(
            &env,
            "ned",
            &role,
            json!({ "onDelete": { "ownedObjects": "Block" } }),
        )
        .await;
        env.delete("ned").await;
        let user = env.condition("ned", "Ready", "False", "CleanupBlocked").await;
        let said = message(&user, "Ready");
        for part in [role.as_str(), env.database.name(), "2BP01"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(user.metadata.finalizers.map(|all| all.len()), Some(1));
        assert!(env.logs_in(&role, "secret").await);
        env.database.execute("DROP SCHEMA s CASCADE").await;
        env.look_again(&operator, "ned").await;
        env.gone("ned").await;
        assert!(!env.has_role(&role).await);
    })
    .await;
}

/// `reassignTo` names the new owner; a missing one is waited for, and nothing is changed before.
#[tokio::test]
async fn owned_objects_are_reassigned_to_a_named_role() {
    let env = TestEnv::new(any()).await;
    let (role, new_owner) = (role_name(), role_name());
    let operator = env.operator().await;
    owner(
        &env,
        "oda",
        &role,
        json!({ "onDelete": { "reassignTo": new_owner } }),
    )
    .await;
    env.delete("oda").await;
    let user = env.condition("oda", "Ready", "False", "CleanupBlocked").await;
    assert!(message(&user, "Ready").contains(&new_owner));
    assert!(env.logs_in(&role, "secret").await);
    env.database.execute(&format!("CREATE ROLE {new_owner}")).await;
    env.look_again(&operator, "oda").await;
    env.gone("oda").await;
    assert_eq!(env.one(&owner_of_kept()).await, new_owner);
    assert_eq!(env.one("SELECT n FROM s.kept").await, "7");
}

/// A role that would give everything to itself, or to its own login, keeps it: nothing of it is dropped. It goes once the
/// spec names another role.
#[tokio::test]
async fn a_role_cannot_be_its_own_new_owner() {
    let env = TestEnv::new(any()).await;
    let _operator = env.operator().await;
    let new_owner = env.group("").await;
    for (name, end, more) in [
        ("self", "", json!({})),
        (
            "login",
            "_a",
            json!({ "passwordSecretRef": null, "password": { "generate": {}, "rotation": { "strategy": "DualUser" } } }),
        ),
    ] {
        let role = role_name();
        env.password(name, "secret").await;
        env.user(name, &role, more).await;
        env.ready(name).await;
        let table = format!("kept_{name}");
        let make = format!("CREATE TABLE public.{table} (n int); ALTER TABLE public.{table} OWNER TO {role}");
        env.database.execute(&make).await;
        let own = format!("{role}{end}");
        env.patch(name, json!({ "spec": { "onDelete": { "reassignTo": own } } }))
            .await;
        env.condition(name, "Ready", "False", "InvalidSpec").await;
        env.delete(name).await;
        let user = env.condition(name, "Ready", "False", "CleanupBlocked").await;
        assert!(message(&user, "Ready").contains(&own), "{user:?}");
        let owner = format!("SELECT tableowner FROM pg_tables WHERE tablename = '{table}'");
        assert_eq!(env.one(&owner).await, role);
        env.patch(
            name,
            json!({ "spec": { "onDelete": { "reassignTo": new_owner } } }),
        )
        .await;
        env.gone(name).await;
        assert_eq!(env.one(&owner).await, new_owner);
    }
}
