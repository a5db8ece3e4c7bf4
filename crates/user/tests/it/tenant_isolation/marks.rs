//! F14: neither a status nor a comment proves what the operator did not write.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::test_env::{TestEnv, any, message, role_name};

async fn set_status(env: &TestEnv, name: &str, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    env.users()
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// a21: somebody who may write the status claims to have created a superuser, or any other role.
#[tokio::test]
async fn a_forged_status_proves_nothing() {
    let env = TestEnv::new(any()).await;
    let mut how = env.how().await;
    how.openings = stanchion_user::Openings::default();
    let operator = env.start(how);
    for attributes in ["LOGIN SUPERUSER PASSWORD 'before'", "LOGIN PASSWORD 'before'"] {
        let role = env.group(attributes).await;
        let name = role.replace('_', "-");
        env.password(&name, "after").await;
        env.user(&name, &role, json!({})).await;
        env.condition(&name, "Ready", "False", "RoleConflict").await;
        let oid: i64 = env.attribute(&role, "oid").await.parse().unwrap();
        let claim = json!({
            "roleOID": oid, "adopted": false, "created": true, "provisionedUsername": role, "roleSeal": "v1.a.b",
        });
        set_status(&env, &name, claim).await;
        env.look_again(&operator, &name).await;
        env.condition(&name, "Ready", "False", "RoleConflict").await;
        assert!(env.logs_in(&role, "before").await && !env.logs_in(&role, "after").await);
        env.delete(&name).await;
        env.gone(&name).await;
        assert!(env.logs_in(&role, "before").await, "nor does it go");
    }
}

/// F14: neither a user's comment nor a mark that somebody wrote by hand is valid: a role with the name of an
/// alternating login, and with the mark of its object, is not taken for the operator's own.
#[tokio::test]
async fn a_forged_comment_proves_nothing() {
    let env = TestEnv::new(any()).await;
    let mut how = env.how().await;
    how.openings = stanchion_user::Openings::default();
    let _operator = env.start(how);
    let (role, forger) = (role_name(), role_name());
    env.password("forger", "p").await;
    let comment = "[stanchion PostgresUser bank/account 0f1e created]";
    env.user("forger", &forger, json!({ "role": { "comment": comment } }))
        .await;
    let user = env.condition("forger", "Ready", "False", "InvalidSpec").await;
    assert!(message(&user, "Ready").contains("role.comment"));

    let dual = json!({
        "passwordSecretRef": null, "suspend": true,
        "password": { "generate": {}, "rotation": { "strategy": "DualUser" } },
    });
    let object = env.user("dual", &role, dual.clone()).await;
    let uid = object.metadata.uid.unwrap();
    for login in ["a", "b"] {
        env.database
            .execute(&format!(
                "CREATE ROLE {role}_{login} LOGIN PASSWORD 'evil'; COMMENT ON ROLE {role}_{login} IS \
                 '[stanchion PostgresUser {}/dual {uid} created]'",
                env.namespace
            ))
            .await;
    }
    let mut dual = dual;
    dual["suspend"] = json!(false);
    env.user("dual", &role, dual).await;
    env.condition("dual", "Ready", "False", "RoleConflict").await;
    let member = format!(
        "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE r.rolname = '{role}' \
         AND m.member <> current_user::regrole"
    );
    assert_eq!(env.one(&member).await, "0");
}

/// F14: a mark that was copied from another role, or changed, is not valid.
#[tokio::test]
async fn a_mark_cannot_be_moved() {
    let env = TestEnv::new(any()).await;
    let operator = env.operator().await;
    let role = role_name();
    env.password("alice", "p").await;
    env.user("alice", &role, json!({})).await;
    env.ready("alice").await;
    let mark = format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    let mark = env.one(&mark).await;
    let group = env.group("").await;
    env.database
        .execute(&format!("COMMENT ON ROLE {group} IS '{mark}'"))
        .await;
    env.password("bob", "p").await;
    env.user("bob", &role_name(), json!({ "memberOf": [{ "role": group }] }))
        .await;
    env.condition("bob", "Ready", "False", "RoleNotAllowed").await;
    let forged = mark.replace(" created ", " adopted ");
    env.database
        .execute(&format!("COMMENT ON ROLE {role} IS '{forged}'"))
        .await;
    env.look_again(&operator, "alice").await;
    let user = env.condition("alice", "Ready", "False", "RoleConflict").await;
    assert!(message(&user, "Ready").contains("invalid seal"), "{user:?}");
}
