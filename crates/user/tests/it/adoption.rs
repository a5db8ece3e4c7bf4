//! Existing roles: adopted within limits, or refused.

use serde_json::json;
use stanchion_testkit::postgres::versions;

use super::bed::{Bed, any, message, role_name};

/// A19, C12: an existing role is adopted, keeps what it had when the object is deleted, and loses what it was granted.
#[tokio::test]
async fn an_adopted_role_outlives_its_object() {
    for version in versions() {
        let bed = Bed::new(version).await;
        let (role, before, given) = (role_name(), bed.group("").await, bed.group("").await);
        let database = bed.database.name();
        bed.database
            .execute(&format!(
                "CREATE ROLE {role} LOGIN PASSWORD 'old' CREATEDB; COMMENT ON ROLE {role} IS 'by hand'; \
                 GRANT {before} TO {role}; GRANT TEMPORARY ON DATABASE {database} TO {role}; \
                 ALTER ROLE {role} SET work_mem TO '2MB'"
            ))
            .await;
        let _operator = bed.operator().await;
        bed.password("alice", "new").await;
        let wish = json!({
            "privileges": ["CONNECT", "TEMPORARY", "READ"],
            "memberOf": [{ "role": before }, { "role": given }],
            "role": { "parameters": { "jit": "off" } }, "existingRolePolicy": "Adopt",
        });
        bed.user("alice", &role, wish).await;
        let user = bed.ready("alice").await;
        assert_eq!(user.status.unwrap().adopted, Some(true));
        assert!(bed.event("alice", "RoleAdopted").await.contains(&role));
        assert!(bed.logs_in(&role, "new").await);
        assert_eq!(bed.words(&role, database).await, "CONNECT,TEMPORARY");
        let comment =
            format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
        assert!(
            bed.one(&comment)
                .await
                .starts_with("by hand [stanchion PostgresUser ")
        );
        bed.delete("alice").await;
        bed.gone("alice").await;
        assert_eq!(bed.words(&role, database).await, "TEMPORARY", "{version}");
        assert_eq!(bed.one(&comment).await, "by hand");
        let groups = format!(
            "SELECT string_agg(roleid::regrole::text, ',') FROM pg_auth_members WHERE member = '{role}'::regrole"
        );
        assert_eq!(bed.one(&groups).await, before);
        let settings =
            format!("SELECT setconfig::text FROM pg_db_role_setting WHERE setrole = '{role}'::regrole");
        assert_eq!(bed.one(&settings).await, "{work_mem=2MB}");
        assert_eq!(bed.attribute(&role, "rolcreatedb").await, "t");
        assert!(bed.logs_in(&role, "new").await);
    }
}

/// A19: roles that are never adopted, and why.
#[tokio::test]
async fn powerful_roles_are_never_adopted() {
    let bed = Bed::new(any()).await;
    let _operator = bed.operator().await;
    let member = bed.group("").await;
    let superuser = bed.group("SUPERUSER").await;
    bed.database
        .execute(&format!("GRANT {superuser} TO {member}"))
        .await;
    let runner = bed.group("").await;
    bed.database
        .execute(&format!("GRANT pg_execute_server_program TO {runner}"))
        .await;
    for (role, power) in [
        (superuser, "SUPERUSER"),
        (member, "SUPERUSER"),
        (runner, "SUPERUSER"),
        (bed.group("REPLICATION").await, "REPLICATION"),
        (bed.group("BYPASSRLS").await, "BYPASSRLS"),
        (bed.group("CREATEROLE").await, "CREATEROLE"),
    ] {
        let name = role.replace('_', "-");
        bed.password(&name, "secret").await;
        bed.user(&name, &role, json!({})).await;
        let user = bed.condition(&name, "Ready", "False", "RoleConflict").await;
        assert!(message(&user, "Ready").contains(power), "{user:?}");
        bed.delete(&name).await;
        bed.gone(&name).await;
        assert!(bed.has_role(&role).await);
    }
}

/// A19: `existingRolePolicy: Fail`, the operator's own role, and a second object for a role.
#[tokio::test]
async fn a_role_that_belongs_to_somebody_is_a_conflict() {
    let bed = Bed::plain(any()).await;
    let own = bed.admin().user().to_owned();
    let _operator = bed.operator().await;
    let role = role_name();
    bed.database.execute(&format!("CREATE ROLE {role}")).await;
    for name in ["fail", "own", "first", "second"] {
        bed.password(name, name).await;
    }
    bed.user("fail", &role, json!({ "existingRolePolicy": "Fail" }))
        .await;
    let user = bed.condition("fail", "Ready", "False", "RoleConflict").await;
    assert!(message(&user, "Ready").contains("exists already"));
    bed.user("own", &own, json!({})).await;
    let user = bed.condition("own", "Ready", "False", "RoleConflict").await;
    assert!(message(&user, "Ready").contains("operator's own role"));

    let shared = role_name();
    bed.user("first", &shared, json!({})).await;
    bed.ready("first").await;
    bed.user("second", &shared, json!({})).await;
    let user = bed.condition("second", "Ready", "False", "RoleConflict").await;
    let owner = format!("belongs to PostgresUser {}/first", bed.namespace);
    assert!(message(&user, "Ready").contains(&owner));
    bed.delete("second").await;
    bed.gone("second").await;
    assert!(bed.logs_in(&shared, "first").await);
}

/// A role whose mark was overwritten by another comment is recognised by its oid.
#[tokio::test]
async fn a_lost_mark_is_put_back() {
    let bed = Bed::new(any()).await;
    let (role, operator) = (role_name(), bed.operator().await);
    bed.password("alice", "secret").await;
    bed.user("alice", &role, json!({ "role": { "comment": "the app's" } }))
        .await;
    bed.ready("alice").await;
    bed.database
        .execute(&format!("COMMENT ON ROLE {role} IS 'mine'"))
        .await;
    bed.look_again(&operator, "alice").await;
    let user = bed.ready("alice").await;
    assert_eq!(user.status.unwrap().adopted, Some(false));
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    let comment = bed.one(&comment).await;
    assert!(
        comment.starts_with("the app's [stanchion PostgresUser "),
        "{comment}"
    );
    assert!(comment.contains(" created v1."), "{comment}");
    bed.delete("alice").await;
    bed.gone("alice").await;
    assert!(!bed.has_role(&role).await);
}
