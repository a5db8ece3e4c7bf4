//! F14: neither a status nor a comment proves what the operator did not write.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::bed::{Bed, any, message, role_name};

async fn set_status(bed: &Bed, name: &str, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    bed.users()
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// a21: somebody who may write the status claims to have created a superuser, or any other role.
#[tokio::test]
async fn a_status_is_no_proof() {
    let bed = Bed::new(any()).await;
    let mut how = bed.how().await;
    how.openings = stanchion_user::Openings::default();
    let operator = bed.start(how);
    for attributes in ["LOGIN SUPERUSER PASSWORD 'before'", "LOGIN PASSWORD 'before'"] {
        let role = bed.group(attributes).await;
        let name = role.replace('_', "-");
        bed.password(&name, "after").await;
        bed.user(&name, &role, json!({})).await;
        bed.condition(&name, "Ready", "False", "RoleConflict").await;
        let oid: i64 = bed.attribute(&role, "oid").await.parse().unwrap();
        let claim = json!({
            "roleOID": oid, "adopted": false, "created": true, "provisionedUsername": role, "roleSeal": "v1.a.b",
        });
        set_status(&bed, &name, claim).await;
        bed.look_again(&operator, &name).await;
        bed.condition(&name, "Ready", "False", "RoleConflict").await;
        assert!(bed.logs_in(&role, "before").await && !bed.logs_in(&role, "after").await);
        bed.delete(&name).await;
        bed.gone(&name).await;
        assert!(bed.logs_in(&role, "before").await, "nor does it go");
    }
}

/// F14: neither a user's comment nor a mark that somebody wrote by hand is valid: a role with the name of an
/// alternating login, and with the mark of its object, is not taken for the operator's own.
#[tokio::test]
async fn a_comment_is_no_proof() {
    let bed = Bed::new(any()).await;
    let mut how = bed.how().await;
    how.openings = stanchion_user::Openings::default();
    let _operator = bed.start(how);
    let (role, forger) = (role_name(), role_name());
    bed.password("forger", "p").await;
    let comment = "[stanchion PostgresUser bank/account 0f1e created]";
    bed.user("forger", &forger, json!({ "role": { "comment": comment } }))
        .await;
    let user = bed.condition("forger", "Ready", "False", "InvalidSpec").await;
    assert!(message(&user, "Ready").contains("role.comment"));

    let dual = json!({
        "passwordSecretRef": null, "suspend": true,
        "password": { "generate": {}, "rotation": { "strategy": "DualUser" } },
    });
    let object = bed.user("dual", &role, dual.clone()).await;
    let uid = object.metadata.uid.unwrap();
    for login in ["a", "b"] {
        bed.database
            .execute(&format!(
                "CREATE ROLE {role}_{login} LOGIN PASSWORD 'evil'; COMMENT ON ROLE {role}_{login} IS \
                 '[stanchion PostgresUser {}/dual {uid} created]'",
                bed.namespace
            ))
            .await;
    }
    let mut dual = dual;
    dual["suspend"] = json!(false);
    bed.user("dual", &role, dual).await;
    bed.condition("dual", "Ready", "False", "RoleConflict").await;
    let member = format!(
        "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE r.rolname = '{role}' \
         AND m.member <> current_user::regrole"
    );
    assert_eq!(bed.one(&member).await, "0");
}

/// F14: a mark that was copied from another role, or changed, is not valid.
#[tokio::test]
async fn a_mark_cannot_be_moved() {
    let bed = Bed::new(any()).await;
    let operator = bed.operator().await;
    let role = role_name();
    bed.password("alice", "p").await;
    bed.user("alice", &role, json!({})).await;
    bed.ready("alice").await;
    let mark = format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    let mark = bed.one(&mark).await;
    let group = bed.group("").await;
    bed.database
        .execute(&format!("COMMENT ON ROLE {group} IS '{mark}'"))
        .await;
    bed.password("bob", "p").await;
    bed.user("bob", &role_name(), json!({ "memberOf": [{ "role": group }] }))
        .await;
    bed.condition("bob", "Ready", "False", "RoleNotAllowed").await;
    let forged = mark.replace(" created ", " adopted ");
    bed.database
        .execute(&format!("COMMENT ON ROLE {role} IS '{forged}'"))
        .await;
    bed.look_again(&operator, "alice").await;
    let user = bed.condition("alice", "Ready", "False", "RoleConflict").await;
    assert!(message(&user, "Ready").contains("did not write"), "{user:?}");
}
