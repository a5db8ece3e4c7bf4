//! What triggers a reconcile, and what does not.

use serde_json::json;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, condition, message, role_name};

/// C21, A11: a changed Secret enqueues the objects that refer to it and no others.
#[tokio::test]
async fn a_changed_secret_enqueues_only_its_users() {
    const MANY: usize = 20;
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let operator = env.operator().await;
        let name = |n: usize| format!("xena-{n}");
        for n in 0..MANY {
            env.password(&name(n), "first").await;
            env.user(&name(n), &format!("{role}_{n}"), json!({})).await;
        }
        for n in 0..MANY {
            env.ready(&name(n)).await;
        }
        let stored = format!(
            "SELECT string_agg(rolpassword, ' ' ORDER BY oid) FROM pg_authid WHERE rolname LIKE '{role}%'"
        );
        let before = env.server_one(&stored).await;
        operator.idle().await;
        let passes = operator.passes();
        env.password(&name(7), "second").await;
        let changed = format!("{role}_7");
        wait::eventually(WAIT_TIMEOUT, "the new password logs in", || {
            env.logs_in(&changed, "second")
        })
        .await;
        assert!(!env.logs_in(&changed, "first").await);
        operator.idle().await;
        assert_eq!(operator.passes(), passes + 1, "nobody else was woken");
        let after = env.server_one(&stored).await;
        let differing = before
            .split(' ')
            .zip(after.split(' '))
            .filter(|(a, b)| a != b)
            .count();
        assert_eq!(differing, 1);
    })
    .await;
}

/// C23, A12: a Secret that is deleted while the user is ready breaks nothing, is reported, and may be created again.
#[tokio::test]
async fn a_deleted_secret_is_reported_and_the_login_stays() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let _operator = env.operator().await;
        env.password("yves", "first").await;
        env.user("yves", &role, json!({})).await;
        env.ready("yves").await;
        env.secrets()
            .delete("yves", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        let user = env
            .condition("yves", "PasswordSynced", "False", "SecretNotFound")
            .await;
        assert_eq!(
            condition(&user, "Ready"),
            Some(("True".into(), "UserCreated".into()))
        );
        assert!(env.logs_in(&role, "first").await);
        env.password("yves", "second").await;
        env.condition("yves", "PasswordSynced", "True", "Synced").await;
        assert!(env.logs_in(&role, "second").await);
    })
    .await;
}

/// A12: a Secret without the key is reported with the key's name, and recovers with it.
#[tokio::test]
async fn a_missing_key_is_named() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let _operator = env.operator().await;
        env.password("zoe", "secret").await;
        let wrong = json!({ "passwordSecretRef": { "name": "zoe", "key": "pass-phrase" } });
        env.user("zoe", &role, wrong).await;
        let user = env.condition("zoe", "Ready", "False", "SecretKeyMissing").await;
        assert!(message(&user, "Ready").contains("pass-phrase"));
        let patch = kube::api::Patch::Merge(json!({ "stringData": { "pass-phrase": "other" } }));
        env.secrets()
            .patch("zoe", &kube::api::PatchParams::default(), &patch)
            .await
            .unwrap();
        env.ready("zoe").await;
        assert!(env.logs_in(&role, "other").await);
    })
    .await;
}
