//! The role itself: attributes, limits, parameters, comment, memberships.

use serde_json::json;
use stanchion_testkit::postgres::{Version, versions};

use super::test_env::{TestEnv, any, message, role_name};

/// Attributes in the spec are enforced; others are left alone. Parameters, including lists, are set and reset.
#[tokio::test]
async fn attributes_limits_and_parameters() {
    let env = TestEnv::new(any()).await;
    let (role, operator) = (role_name(), env.operator().await);
    env.password("alice", "p").await;
    let request = json!({ "role": {
        "inherit": false, "createDatabase": true, "connectionLimit": 3, "validUntil": "2999-01-02T03:04:05Z",
        "comment": "it's the \"app\"",
        "parameters": { "search_path": "app, \"$user\",public", "statement_timeout": "5s", "TimeZone": "UTC" },
    }});
    env.user("alice", &role, request).await;
    let user = env.ready("alice").await;
    let expires = user.status.unwrap().password.unwrap().expires_at.unwrap();
    assert_eq!(expires.to_string(), "2999-01-02T03:04:05Z");
    let row = format!(
        "SELECT concat_ws(' ', rolinherit, rolcreatedb, rolconnlimit, rolvaliduntil AT TIME ZONE 'UTC') FROM pg_roles WHERE rolname = '{role}'"
    );
    assert_eq!(env.one(&row).await, "f t 3 2999-01-02 03:04:05");
    let session = env.database.connect(&role, "p").await.unwrap();
    for (name, value) in [
        ("search_path", "app, \"$user\", public"),
        ("statement_timeout", "5s"),
        ("timezone", "UTC"),
    ] {
        let shown = session.query_one(&format!("SHOW {name}"), &[]).await.unwrap();
        assert_eq!(shown.get::<_, String>(0), value);
    }
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    assert!(
        env.one(&comment)
            .await
            .starts_with("it's the \"app\" [stanchion ")
    );
    // Neither a superuser nor another administrator finds anything to do.
    let writes = env.sql_writes().len();
    env.look_again(&operator, "alice").await;
    assert_eq!(env.sql_writes()[writes..], [] as [String; 0]);

    env.database
        .execute(&format!("ALTER ROLE {role} SET jit TO off"))
        .await;
    let less =
        json!({ "role": { "parameters": { "search_path": "app" }, "validUntil": "2001-01-01T00:00:00Z" } });
    env.user("alice", &role, less).await;
    env.ready("alice").await;
    let settings = format!(
        "SELECT array_to_string(ARRAY(SELECT unnest(setconfig) ORDER BY 1), ' ') FROM pg_db_role_setting WHERE setrole = '{role}'::regrole"
    );
    assert_eq!(env.one(&settings).await, "jit=off search_path=app");
    assert_eq!(env.attribute(&role, "rolcreatedb").await, "t");
    assert!(!env.logs_in(&role, "p").await, "its time is over");

    env.user("alice", &role, json!({ "role": { "login": false } }))
        .await;
    env.ready("alice").await;
    assert_eq!(env.attribute(&role, "rolcanlogin").await, "f");
}

/// `allowedAttributes`: powers need the instance's permission, in every form.
#[tokio::test]
async fn powers_need_the_instances_permission() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    let superuser = env.group("SUPERUSER").await;
    let inner = env.group("").await;
    env.database
        .execute(&format!("GRANT {superuser} TO {inner}"))
        .await;
    env.password("alice", "p").await;
    for request in [
        json!({ "role": { "superuser": true } }),
        json!({ "role": { "replication": true } }),
        json!({ "role": { "bypassRLS": true } }),
        json!({ "role": { "createRole": true } }),
        json!({ "role": { "parameters": { "session_preload_libraries": "evil" } } }),
        json!({ "memberOf": [{ "role": superuser }] }),
        json!({ "memberOf": [{ "role": inner }] }),
        json!({ "memberOf": [{ "role": "pg_write_server_files" }] }),
    ] {
        env.user("alice", &role, request.clone()).await;
        let user = env
            .condition("alice", "Ready", "False", "AttributeNotAllowed")
            .await;
        assert!(message(&user, "Ready").contains("allowedAttributes"), "{request}");
        assert!(!env.has_role(&role).await);
    }
    env.delete("alice").await;
    env.gone("alice").await;
    let all = json!(["superuser", "replication", "bypassRLS", "createRole"]);
    env.instance("strong", json!({ "allowedAttributes": all })).await;
    let request = json!({
        "instanceRef": { "name": "strong" }, "memberOf": [{ "role": inner }],
        "role": { "replication": true, "bypassRLS": true, "createRole": true, "superuser": false },
    });
    env.user("alice", &role, request).await;
    env.ready("alice").await;
    let powers = "concat_ws(' ', rolreplication, rolbypassrls, rolcreaterole, rolsuper)";
    assert_eq!(env.attribute(&role, powers).await, "t t t f");
}

/// Memberships with their options, on every version; those that leave the spec are revoked, others stay unless the list
/// is `Authoritative`.
#[tokio::test]
async fn memberships_come_and_go() {
    for version in versions() {
        let env = TestEnv::new(version).await;
        let (role, _operator) = (role_name(), env.operator().await);
        let (one, two, foreign) = (env.group("").await, env.group("").await, env.group("").await);
        let grantor = env.group("").await;
        let list = format!(
            "SELECT coalesce(string_agg(roleid::regrole::text || CASE WHEN admin_option THEN '*' ELSE '' END, ',' ORDER BY roleid), '') \
             FROM pg_auth_members WHERE member = '{role}'::regrole"
        );
        env.password("alice", "p").await;
        env.user(
            "alice",
            &role,
            json!({ "memberOf": [{ "role": one }, { "role": two, "admin": true }] }),
        )
        .await;
        env.ready("alice").await;
        assert_eq!(env.one(&list).await, format!("{one},{two}*"));
        env.database
            .execute(&format!(
                "GRANT {foreign} TO {grantor} WITH ADMIN OPTION; SET ROLE {grantor}; GRANT {foreign} TO {role}"
            ))
            .await;
        env.user("alice", &role, json!({ "memberOf": [{ "role": two }] }))
            .await;
        env.ready("alice").await;
        assert_eq!(env.one(&list).await, format!("{two},{foreign}"), "{version}");
        let only = json!({ "memberOf": [{ "role": two }], "membershipPolicy": "Authoritative" });
        env.user("alice", &role, only).await;
        env.ready("alice").await;
        assert_eq!(env.one(&list).await, two, "{version}");

        let options = json!({ "memberOf": [{ "role": two, "inherit": false, "set": false }] });
        env.user("alice", &role, options).await;
        if version == Version::V15 {
            let user = env
                .condition("alice", "Ready", "False", "UnsupportedByServer")
                .await;
            assert!(message(&user, "Ready").contains("PostgreSQL 16"));
        } else {
            env.ready("alice").await;
            let options = format!(
                "SELECT concat_ws(' ', inherit_option, set_option) FROM pg_auth_members WHERE member = '{role}'::regrole"
            );
            assert_eq!(env.one(&options).await, "f f");
        }
    }
}

/// `auth.iam`: the role is a member of the cloud's login role, and has no password.
#[tokio::test]
async fn a_cloud_identity_logs_in_without_a_password() {
    let env = TestEnv::new(any()).await;
    let (role, cloud) = (role_name(), env.group("").await);
    let _operator = env.operator().await;
    let request =
        json!({ "passwordSecretRef": null, "auth": { "iam": { "provider": "aws", "roleName": cloud } } });
    env.user("alice", &role, request).await;
    env.ready("alice").await;
    let member = format!("SELECT pg_has_role('{role}', '{cloud}', 'MEMBER')");
    assert_eq!(env.one(&member).await, "t");
    let stored = format!("SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = '{role}'");
    assert_eq!(env.one(&stored).await, "t");
    env.user(
        "alice",
        &role,
        json!({ "auth": { "iam": { "provider": "azure" } }, "passwordSecretRef": null }),
    )
    .await;
    let user = env.condition("alice", "Ready", "False", "RoleNotFound").await;
    assert!(message(&user, "Ready").contains("azure_ad_user"));
}

/// What is removed from the spec returns to PostgreSQL's defaults (16 and later); where it cannot, the condition
/// reports that.
#[tokio::test]
async fn reverting_a_role_works_or_reports_why_not() {
    let version = *versions().last().unwrap();
    let env = TestEnv::new(version).await;
    let (role, group) = (role_name(), env.group("").await);
    let operator = env.operator().await;
    env.instance("main", json!({})).await;
    env.password("alice", "p").await;
    let request = |more: serde_json::Value, owner: bool| {
        let mut membership = json!({ "role": group });
        json_patch::merge(&mut membership, &more);
        json!({
            "instanceRef": { "name": "main" }, "memberOf": [membership],
            "databases": [{ "name": env.database.name(), "owner": owner }],
        })
    };
    env.user(
        "alice",
        &role,
        request(json!({ "inherit": false, "set": false }), true),
    )
    .await;
    env.ready("alice").await;
    let options = format!(
        "SELECT concat_ws(' ', inherit_option, set_option) FROM pg_auth_members WHERE member = '{role}'::regrole"
    );
    assert_eq!(env.one(&options).await, "f f");
    env.user("alice", &role, request(json!({}), false)).await;
    let user = env.ready("alice").await;
    assert_eq!(env.one(&options).await, "t t");
    let said = message(&user, "PrivilegesSynced");
    assert!(said.contains("owns database"), "{said}");
    let writes = env.sql_writes().len();
    env.look_again(&operator, "alice").await;
    assert_eq!(env.sql_writes()[writes..], [] as [String; 0]);
}

/// What the operator does not revert when it leaves the spec is in the condition.
#[tokio::test]
async fn what_stays_after_its_field_is_reported() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    let made = format!("{role}_db");
    env.password("alice", "p").await;
    let request = |revoke: bool, more: serde_json::Value| {
        json!({
            "database": made, "role": more,
            "createDatabase": { "enabled": true, "revokePublic": revoke, "deletionPolicy": "Delete" },
        })
    };
    let set = json!({ "createDatabase": true, "connectionLimit": 3 });
    env.user("alice", &role, request(true, set)).await;
    let user = env.ready("alice").await;
    assert_eq!(message(&user, "PrivilegesSynced"), "");
    env.user(
        "alice",
        &role,
        request(false, json!({ "createDatabase": null, "connectionLimit": null })),
    )
    .await;
    let user = env.ready("alice").await;
    let said = message(&user, "PrivilegesSynced");
    for part in [
        format!("PUBLIC lacks CONNECT, TEMPORARY on database {made}"),
        "does not set `role.createDatabase`".to_owned(),
        "does not set `role.connectionLimit`".to_owned(),
    ] {
        assert!(said.contains(&part), "{said}");
    }
    let undo = format!(
        "GRANT CONNECT, TEMPORARY ON DATABASE {made} TO PUBLIC; ALTER ROLE {role} NOCREATEDB CONNECTION LIMIT -1"
    );
    env.database.execute(&undo).await;
    env.annotate("alice", "db.example.com/reconcile-at", "again")
        .await;
    env.until("alice", |user| message(user, "PrivilegesSynced").is_empty())
        .await;
    env.delete("alice").await;
    env.gone("alice").await;
}
