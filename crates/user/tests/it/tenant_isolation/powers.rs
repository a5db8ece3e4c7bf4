//! Powers over the server: by adoption, by a parameter, by an attribute, by a role of others.

use serde_json::json;
use stanchion_user::Openings;

use super::tenants::{InstanceAccess, Tenants, accesses};
use crate::test_env::{How, TestEnv, any, role_name};

/// F3: a role that a person created is adopted only if that is allowed; never by default, and never a powerful one.
#[tokio::test]
async fn adopts_no_role_that_is_not_opened() {
    let env = TestEnv::new(any()).await;
    let mut how = env.how().await;
    how.openings = Openings {
        adoption: vec!["legacy_*".into()],
        ..Openings::default()
    };
    let _operator = env.start(how);
    let dba = env.group("LOGIN PASSWORD 'before'").await;
    let owner = env.group("LOGIN PASSWORD 'before'").await;
    env.database
        .execute(&format!(
            "ALTER DATABASE {} OWNER TO {owner}",
            env.database.name()
        ))
        .await;
    for role in [&dba, &owner] {
        for policy in [json!({}), json!({ "existingRolePolicy": "Adopt" })] {
            let name = role.replace('_', "-");
            env.password(&name, "after").await;
            env.user(&name, role, policy).await;
            env.condition(&name, "Ready", "False", "RoleConflict").await;
            env.delete(&name).await;
            env.gone(&name).await;
            assert!(env.logs_in(role, "before").await && !env.logs_in(role, "after").await);
        }
    }
    let legacy = format!("legacy_{dba}");
    env.database.execute(&format!("CREATE ROLE {legacy} LOGIN")).await;
    env.password("legacy", "after").await;
    env.user("legacy", &legacy, json!({ "existingRolePolicy": "Adopt" }))
        .await;
    env.ready("legacy").await;
    assert!(env.logs_in(&legacy, "after").await);
}

/// F15: no parameter that hides what a role does from monitoring.
#[tokio::test]
async fn sets_no_parameter_that_hides_what_it_does() {
    for (version, access) in accesses() {
        let tenants = Tenants::new(version, access, Openings::default()).await;
        for (name, value) in [
            ("log_statement", "none"),
            ("log_min_messages", "panic"),
            ("Log_Duration", "off"),
            ("pgaudit.log", "none"),
            ("track_activities", "off"),
            ("temp_file_limit", "-1"),
            ("session_preload_libraries", "evil"),
            ("local_preload_libraries", "evil"),
            ("session_replication_role", "replica"),
            ("role", "postgres"),
            ("app.anything", "x"),
        ] {
            let request = json!({ "role": { "parameters": { name: value } } });
            tenants.refuses(request, "AttributeNotAllowed").await;
        }
        let role = role_name();
        let request = json!({ "role": { "parameters": { "work_mem": "4MB", "search_path": "a, b" } } });
        tenants.tries("modest", &role, request).await;
        tenants.evil.ready("modest").await;
    }
}

/// No powers by any name, attribute or membership.
#[tokio::test]
async fn gets_no_power_over_the_server() {
    for (version, access) in accesses() {
        let tenants = Tenants::new(version, access, Openings::default()).await;
        let iam = |role: &str| json!({ "passwordSecretRef": null, "auth": { "iam": { "provider": "aws", "roleName": role } } });
        for request in [
            json!({ "role": { "superuser": true } }),
            json!({ "role": { "createRole": true } }),
            json!({ "role": { "replication": true } }),
            json!({ "role": { "bypassRLS": true } }),
            json!({ "role": { "parameters": { "session_preload_libraries": "auto_explain" } } }),
            json!({ "memberOf": [{ "role": "pg_execute_server_program" }] }),
            json!({ "memberOf": [{ "role": "pg_read_server_files" }] }),
            json!({ "memberOf": [{ "role": "pg_write_server_files" }] }),
            json!({ "memberOf": [{ "role": "postgres" }] }),
            iam("pg_execute_server_program"),
            iam("postgres"),
        ] {
            tenants.refuses(request, "AttributeNotAllowed").await;
        }
        tenants.refuses(iam("pg_monitor"), "RoleNotAllowed").await;
    }
}

/// A username is a valid name, and nobody else's.
#[tokio::test]
async fn cannot_take_a_role_of_another_object() {
    let tenants = Tenants::new(any(), InstanceAccess::Default, Openings::default()).await;
    let conflict = async |username: &str| {
        tenants.tries("thief", username, json!({})).await;
        tenants
            .evil
            .condition("thief", "Ready", "False", "RoleConflict")
            .await;
        tenants.evil.delete("thief").await;
        tenants.evil.gone("thief").await;
    };
    conflict(&tenants.account).await;
    let superuser = tenants.bank.group("SUPERUSER LOGIN").await;
    conflict(&superuser).await;
    for username in [
        "postgres",
        "pg_monitor",
        "a; DROP ROLE b",
        "x SUPERUSER",
        "stanchion_kept_1_00000000",
    ] {
        let user: stanchion_api::PostgresUser = serde_json::from_value(json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "x" },
            "spec": { "username": username, "database": "app", "passwordSecretRef": { "name": "s" } },
        }))
        .unwrap();
        assert_eq!(
            stanchion_user::check(&user).err().unwrap().reason,
            "InvalidSpec",
            "{username}"
        );
    }
    assert!(tenants.bank.logs_in(&tenants.account, "p").await);
}

/// The operator's own role cannot be used.
#[tokio::test]
async fn cannot_take_the_role_of_the_operator() {
    let env = TestEnv::plain(any()).await;
    let own = env.admin().user().to_owned();
    let how = How {
        openings: Openings::default(),
        ..env.how().await
    };
    let _operator = env.start(how);
    env.password("own", "p").await;
    env.user("own", &own, json!({})).await;
    env.condition("own", "Ready", "False", "RoleConflict").await;
    env.password("member", "p").await;
    env.user("member", &role_name(), json!({ "memberOf": [{ "role": own }] }))
        .await;
    env.condition("member", "Ready", "False", "AttributeNotAllowed")
        .await;
}
