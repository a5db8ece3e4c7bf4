//! Existing roles: adopted within limits, or refused.

use serde_json::json;
use stanchion_testkit::postgres::versions;

use super::test_env::{TestEnv, any, message, role_name};

/// A19, C12: an existing role is adopted, keeps what it had when the object is deleted, and loses what it was granted.
#[tokio::test]
async fn an_adopted_role_outlives_its_object() {
    for version in versions() {
        let env = TestEnv::new(version).await;
        let (role, before, given) = (role_name(), env.group("").await, env.group("").await);
        let database = env.database.name();
        env.database
            .execute(&format!(
                "CREATE ROLE {role} LOGIN PASSWORD 'old' CREATEDB; COMMENT ON ROLE {role} IS 'by hand'; \
                 GRANT {before} TO {role}; GRANT TEMPORARY ON DATABASE {database} TO {role}; \
                 ALTER ROLE {role} SET work_mem TO '2MB'"
            ))
            .await;
        let _operator = env.operator().await;
        env.password("alice", "new").await;
        let request = json!({
            "privileges": ["CONNECT", "TEMPORARY", "READ"],
            "memberOf": [{ "role": before }, { "role": given }],
            "role": { "parameters": { "jit": "off" } }, "existingRolePolicy": "Adopt",
        });
        env.user("alice", &role, request).await;
        let user = env.ready("alice").await;
        assert_eq!(user.status.unwrap().adopted, Some(true));
        assert!(env.event("alice", "RoleAdopted").await.contains(&role));
        assert!(env.logs_in(&role, "new").await);
        assert_eq!(env.words(&role, database).await, "CONNECT,TEMPORARY");
        let comment =
            format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
        assert!(
            env.one(&comment)
                .await
                .starts_with("by hand [stanchion PostgresUser ")
        );
        env.delete("alice").await;
        env.gone("alice").await;
        assert_eq!(env.words(&role, database).await, "TEMPORARY", "{version}");
        assert_eq!(env.one(&comment).await, "by hand");
        let groups = format!(
            "SELECT string_agg(roleid::regrole::text, ',') FROM pg_auth_members WHERE member = '{role}'::regrole"
        );
        assert_eq!(env.one(&groups).await, before);
        let settings =
            format!("SELECT setconfig::text FROM pg_db_role_setting WHERE setrole = '{role}'::regrole");
        assert_eq!(env.one(&settings).await, "{work_mem=2MB}");
        assert_eq!(env.attribute(&role, "rolcreatedb").await, "t");
        assert!(env.logs_in(&role, "new").await);
    }
}

/// A19: roles that are never adopted, and why.
#[tokio::test]
async fn powerful_roles_are_never_adopted() {
    let env = TestEnv::new(any()).await;
    let _operator = env.operator().await;
    let member = env.group("").await;
    let superuser = env.group("SUPERUSER").await;
    env.database
        .execute(&format!("GRANT {superuser} TO {member}"))
        .await;
    let runner = env.group("").await;
    env.database
        .execute(&format!("GRANT pg_execute_server_program TO {runner}"))
        .await;
    for (role, power) in [
        (superuser, "SUPERUSER"),
        (member, "SUPERUSER"),
        (runner, "SUPERUSER"),
        (env.group("REPLICATION").await, "REPLICATION"),
        (env.group("BYPASSRLS").await, "BYPASSRLS"),
        (env.group("CREATEROLE").await, "CREATEROLE"),
    ] {
        let name = role.replace('_', "-");
        env.password(&name, "secret").await;
        env.user(&name, &role, json!({})).await;
        let user = env.condition(&name, "Ready", "False", "RoleConflict").await;
        assert!(message(&user, "Ready").contains(power), "{user:?}");
        env.delete(&name).await;
        env.gone(&name).await;
        assert!(env.has_role(&role).await);
    }
}

/// A19: `existingRolePolicy: Fail`, the operator's own role, and a second object for a role.
#[tokio::test]
async fn a_role_of_another_object_is_a_conflict() {
    let env = TestEnv::plain(any()).await;
    let own = env.admin().user().to_owned();
    let _operator = env.operator().await;
    let role = role_name();
    env.database.execute(&format!("CREATE ROLE {role}")).await;
    for name in ["fail", "own", "first", "second"] {
        env.password(name, name).await;
    }
    env.user("fail", &role, json!({ "existingRolePolicy": "Fail" }))
        .await;
    let user = env.condition("fail", "Ready", "False", "RoleConflict").await;
    assert!(message(&user, "Ready").contains("exists already"));
    env.user("own", &own, json!({})).await;
    let user = env.condition("own", "Ready", "False", "RoleConflict").await;
    assert!(message(&user, "Ready").contains("operator's own role"));

    let shared = role_name();
    env.user("first", &shared, json!({})).await;
    env.ready("first").await;
    env.user("second", &shared, json!({})).await;
    let user = env.condition("second", "Ready", "False", "RoleConflict").await;
    let owner = format!("belongs to PostgresUser {}/first", env.namespace);
    assert!(message(&user, "Ready").contains(&owner));
    env.delete("second").await;
    env.gone("second").await;
    assert!(env.logs_in(&shared, "first").await);
}

/// A role whose mark was overwritten by another comment is recognised by its oid.
#[tokio::test]
async fn a_lost_mark_is_put_back() {
    let env = TestEnv::new(any()).await;
    let (role, operator) = (role_name(), env.operator().await);
    env.password("alice", "secret").await;
    env.user("alice", &role, json!({ "role": { "comment": "the app's" } }))
        .await;
    env.ready("alice").await;
    env.database
        .execute(&format!("COMMENT ON ROLE {role} IS 'mine'"))
        .await;
    env.look_again(&operator, "alice").await;
    let user = env.ready("alice").await;
    assert_eq!(user.status.unwrap().adopted, Some(false));
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    let comment = env.one(&comment).await;
    assert!(
        comment.starts_with("the app's [stanchion PostgresUser "),
        "{comment}"
    );
    assert!(comment.contains(" created v1."), "{comment}");
    env.delete("alice").await;
    env.gone("alice").await;
    assert!(!env.has_role(&role).await);
}

/// In a schema without tables an adopted role already has a privilege on all of them. What the operator grants there is still
/// its own, and goes with the request or with the object.
#[tokio::test]
async fn an_adopted_role_loses_what_it_was_granted_in_an_empty_schema() {
    let env = TestEnv::new(any()).await;
    let _operator = env.operator().await;
    let request = |words: &[&str]| json!({ "privileges": words, "existingRolePolicy": "Adopt" });
    let mut roles = Vec::new();
    for name in ["withdrawn", "deleted"] {
        let role = role_name();
        env.database
            .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'old'"))
            .await;
        env.password(name, "p").await;
        env.user(name, &role, request(&["READ"])).await;
        env.ready(name).await;
        roles.push(role);
    }
    env.database
        .execute("CREATE TABLE public.t (n int); CREATE SEQUENCE public.s")
        .await;
    let read = "SELECT FROM public.t; SELECT last_value FROM public.s";
    for role in &roles {
        assert!(env.can(role, "p", read).await);
    }
    env.user("withdrawn", &roles[0], request(&["CONNECT"])).await;
    env.ready("withdrawn").await;
    env.delete("deleted").await;
    env.gone("deleted").await;
    for role in &roles {
        for on in ["SELECT FROM public.t", "SELECT last_value FROM public.s"] {
            assert!(!env.can(role, "p", on).await, "{on}");
        }
    }
}
