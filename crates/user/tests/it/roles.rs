//! The role itself: attributes, limits, parameters, comment, memberships.

use serde_json::json;
use stanchion_testkit::postgres::{Version, versions};

use super::bed::{Bed, any, message, role_name};

/// Attributes in the spec are enforced; others are left alone. Parameters, including lists, are set and reset.
#[tokio::test]
async fn attributes_limits_and_parameters() {
    let bed = Bed::new(any()).await;
    let (role, operator) = (role_name(), bed.operator().await);
    bed.password("alice", "p").await;
    let wish = json!({ "role": {
        "inherit": false, "createDatabase": true, "connectionLimit": 3, "validUntil": "2999-01-02T03:04:05Z",
        "comment": "it's the \"app\"",
        "parameters": { "search_path": "app, \"$user\",public", "statement_timeout": "5s", "TimeZone": "UTC" },
    }});
    bed.user("alice", &role, wish).await;
    let user = bed.ready("alice").await;
    let expires = user.status.unwrap().password.unwrap().expires_at.unwrap();
    assert_eq!(expires.to_string(), "2999-01-02T03:04:05Z");
    let row = format!(
        "SELECT concat_ws(' ', rolinherit, rolcreatedb, rolconnlimit, rolvaliduntil AT TIME ZONE 'UTC') FROM pg_roles WHERE rolname = '{role}'"
    );
    assert_eq!(bed.one(&row).await, "f t 3 2999-01-02 03:04:05");
    let session = bed.database.connect(&role, "p").await.unwrap();
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
        bed.one(&comment)
            .await
            .starts_with("it's the \"app\" [stanchion ")
    );
    // Neither a superuser nor another administrator finds anything to do.
    let writes = bed.sql_writes().len();
    bed.look_again(&operator, "alice").await;
    assert_eq!(bed.sql_writes()[writes..], [] as [String; 0]);

    bed.database
        .execute(&format!("ALTER ROLE {role} SET jit TO off"))
        .await;
    let less =
        json!({ "role": { "parameters": { "search_path": "app" }, "validUntil": "2001-01-01T00:00:00Z" } });
    bed.user("alice", &role, less).await;
    bed.ready("alice").await;
    let settings = format!(
        "SELECT array_to_string(ARRAY(SELECT unnest(setconfig) ORDER BY 1), ' ') FROM pg_db_role_setting WHERE setrole = '{role}'::regrole"
    );
    assert_eq!(bed.one(&settings).await, "jit=off search_path=app");
    assert_eq!(bed.attribute(&role, "rolcreatedb").await, "t");
    assert!(!bed.logs_in(&role, "p").await, "its time is over");

    bed.user("alice", &role, json!({ "role": { "login": false } }))
        .await;
    bed.ready("alice").await;
    assert_eq!(bed.attribute(&role, "rolcanlogin").await, "f");
}

/// `allowedAttributes`: powers need the instance's permission, in every form.
#[tokio::test]
async fn powers_need_the_instances_permission() {
    let bed = Bed::new(any()).await;
    let (role, _operator) = (role_name(), bed.operator().await);
    let superuser = bed.group("SUPERUSER").await;
    let inner = bed.group("").await;
    bed.database
        .execute(&format!("GRANT {superuser} TO {inner}"))
        .await;
    bed.password("alice", "p").await;
    for wish in [
        json!({ "role": { "superuser": true } }),
        json!({ "role": { "replication": true } }),
        json!({ "role": { "bypassRLS": true } }),
        json!({ "role": { "createRole": true } }),
        json!({ "role": { "parameters": { "session_preload_libraries": "evil" } } }),
        json!({ "memberOf": [{ "role": superuser }] }),
        json!({ "memberOf": [{ "role": inner }] }),
        json!({ "memberOf": [{ "role": "pg_write_server_files" }] }),
    ] {
        bed.user("alice", &role, wish.clone()).await;
        let user = bed
            .condition("alice", "Ready", "False", "AttributeNotAllowed")
            .await;
        assert!(message(&user, "Ready").contains("allowedAttributes"), "{wish}");
        assert!(!bed.has_role(&role).await);
    }
    bed.delete("alice").await;
    bed.gone("alice").await;
    let all = json!(["superuser", "replication", "bypassRLS", "createRole"]);
    bed.instance("strong", json!({ "allowedAttributes": all })).await;
    let wish = json!({
        "instanceRef": { "name": "strong" }, "memberOf": [{ "role": inner }],
        "role": { "replication": true, "bypassRLS": true, "createRole": true, "superuser": false },
    });
    bed.user("alice", &role, wish).await;
    bed.ready("alice").await;
    let powers = "concat_ws(' ', rolreplication, rolbypassrls, rolcreaterole, rolsuper)";
    assert_eq!(bed.attribute(&role, powers).await, "t t t f");
}

/// Memberships with their options, on every version; those that leave the spec are revoked, others stay unless the list
/// is `Authoritative`.
#[tokio::test]
async fn memberships_come_and_go() {
    for version in versions() {
        let bed = Bed::new(version).await;
        let (role, _operator) = (role_name(), bed.operator().await);
        let (one, two, foreign) = (bed.group("").await, bed.group("").await, bed.group("").await);
        let grantor = bed.group("").await;
        let list = format!(
            "SELECT coalesce(string_agg(roleid::regrole::text || CASE WHEN admin_option THEN '*' ELSE '' END, ',' ORDER BY roleid), '') \
             FROM pg_auth_members WHERE member = '{role}'::regrole"
        );
        bed.password("alice", "p").await;
        bed.user(
            "alice",
            &role,
            json!({ "memberOf": [{ "role": one }, { "role": two, "admin": true }] }),
        )
        .await;
        bed.ready("alice").await;
        assert_eq!(bed.one(&list).await, format!("{one},{two}*"));
        bed.database
            .execute(&format!(
                "GRANT {foreign} TO {grantor} WITH ADMIN OPTION; SET ROLE {grantor}; GRANT {foreign} TO {role}"
            ))
            .await;
        bed.user("alice", &role, json!({ "memberOf": [{ "role": two }] }))
            .await;
        bed.ready("alice").await;
        assert_eq!(bed.one(&list).await, format!("{two},{foreign}"), "{version}");
        let only = json!({ "memberOf": [{ "role": two }], "membershipPolicy": "Authoritative" });
        bed.user("alice", &role, only).await;
        bed.ready("alice").await;
        assert_eq!(bed.one(&list).await, two, "{version}");

        let options = json!({ "memberOf": [{ "role": two, "inherit": false, "set": false }] });
        bed.user("alice", &role, options).await;
        if version == Version::V15 {
            let user = bed
                .condition("alice", "Ready", "False", "UnsupportedByServer")
                .await;
            assert!(message(&user, "Ready").contains("PostgreSQL 16"));
        } else {
            bed.ready("alice").await;
            let options = format!(
                "SELECT concat_ws(' ', inherit_option, set_option) FROM pg_auth_members WHERE member = '{role}'::regrole"
            );
            assert_eq!(bed.one(&options).await, "f f");
        }
    }
}

/// `auth.iam`: the role is a member of the cloud's login role, and has no password.
#[tokio::test]
async fn a_cloud_identity_logs_in_without_a_password() {
    let bed = Bed::new(any()).await;
    let (role, cloud) = (role_name(), bed.group("").await);
    let _operator = bed.operator().await;
    let wish =
        json!({ "passwordSecretRef": null, "auth": { "iam": { "provider": "aws", "roleName": cloud } } });
    bed.user("alice", &role, wish).await;
    bed.ready("alice").await;
    let member = format!("SELECT pg_has_role('{role}', '{cloud}', 'MEMBER')");
    assert_eq!(bed.one(&member).await, "t");
    let stored = format!("SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = '{role}'");
    assert_eq!(bed.one(&stored).await, "t");
    bed.user(
        "alice",
        &role,
        json!({ "auth": { "iam": { "provider": "azure" } }, "passwordSecretRef": null }),
    )
    .await;
    let user = bed.condition("alice", "Ready", "False", "RoleNotFound").await;
    assert!(message(&user, "Ready").contains("azure_ad_user"));
}

/// What is removed from the spec returns to PostgreSQL's defaults (16 and later); where it cannot, the condition
/// reports that.
#[tokio::test]
async fn the_way_back_leads_back_or_is_said_to_have_an_end() {
    let version = *versions().last().unwrap();
    let bed = Bed::new(version).await;
    let (role, group) = (role_name(), bed.group("").await);
    let operator = bed.operator().await;
    bed.instance("main", json!({})).await;
    bed.password("alice", "p").await;
    let wish = |more: serde_json::Value, owner: bool| {
        let mut membership = json!({ "role": group });
        json_patch::merge(&mut membership, &more);
        json!({
            "instanceRef": { "name": "main" }, "memberOf": [membership],
            "databases": [{ "name": bed.database.name(), "owner": owner }],
        })
    };
    bed.user(
        "alice",
        &role,
        wish(json!({ "inherit": false, "set": false }), true),
    )
    .await;
    bed.ready("alice").await;
    let options = format!(
        "SELECT concat_ws(' ', inherit_option, set_option) FROM pg_auth_members WHERE member = '{role}'::regrole"
    );
    assert_eq!(bed.one(&options).await, "f f");
    bed.user("alice", &role, wish(json!({}), false)).await;
    let user = bed.ready("alice").await;
    assert_eq!(bed.one(&options).await, "t t");
    let said = message(&user, "PrivilegesSynced");
    assert!(said.contains("owns database"), "{said}");
    let writes = bed.sql_writes().len();
    bed.look_again(&operator, "alice").await;
    assert_eq!(bed.sql_writes()[writes..], [] as [String; 0]);
}
