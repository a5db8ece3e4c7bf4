//! What triggers a reconcile, and what does not.

use serde_json::json;
use stanchion_testkit::wait;

use super::bed::{Bed, PATIENCE, condition, message, role_name};

/// C21, A11: a changed Secret enqueues the objects that refer to it and no others.
#[tokio::test]
async fn a_changed_secret_wakes_only_whose_it_is() {
    const MANY: usize = 20;
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let operator = bed.operator().await;
        let name = |n: usize| format!("xena-{n}");
        for n in 0..MANY {
            bed.password(&name(n), "first").await;
            bed.user(&name(n), &format!("{role}_{n}"), json!({})).await;
        }
        for n in 0..MANY {
            bed.ready(&name(n)).await;
        }
        let stored = format!(
            "SELECT string_agg(rolpassword, ' ' ORDER BY oid) FROM pg_authid WHERE rolname LIKE '{role}%'"
        );
        let before = bed.server_one(&stored).await;
        operator.idle().await;
        let passes = operator.passes();
        bed.password(&name(7), "second").await;
        let changed = format!("{role}_7");
        wait::eventually(PATIENCE, "the new password logs in", || {
            bed.logs_in(&changed, "second")
        })
        .await;
        assert!(!bed.logs_in(&changed, "first").await);
        operator.idle().await;
        assert_eq!(operator.passes(), passes + 1, "nobody else was woken");
        let after = bed.server_one(&stored).await;
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
async fn a_secret_that_goes_later_is_only_told_of() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let _operator = bed.operator().await;
        bed.password("yves", "first").await;
        bed.user("yves", &role, json!({})).await;
        bed.ready("yves").await;
        bed.secrets()
            .delete("yves", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        let user = bed
            .condition("yves", "PasswordSynced", "False", "SecretNotFound")
            .await;
        assert_eq!(
            condition(&user, "Ready"),
            Some(("True".into(), "UserCreated".into()))
        );
        assert!(bed.logs_in(&role, "first").await);
        bed.password("yves", "second").await;
        bed.condition("yves", "PasswordSynced", "True", "Synced").await;
        assert!(bed.logs_in(&role, "second").await);
    })
    .await;
}

/// A12: a Secret without the key is reported with the key's name, and recovers with it.
#[tokio::test]
async fn a_missing_key_is_named() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let _operator = bed.operator().await;
        bed.password("zoe", "secret").await;
        let wrong = json!({ "passwordSecretRef": { "name": "zoe", "key": "pass-phrase" } });
        bed.user("zoe", &role, wrong).await;
        let user = bed.condition("zoe", "Ready", "False", "SecretKeyMissing").await;
        assert!(message(&user, "Ready").contains("pass-phrase"));
        let patch = kube::api::Patch::Merge(json!({ "stringData": { "pass-phrase": "other" } }));
        bed.secrets()
            .patch("zoe", &kube::api::PatchParams::default(), &patch)
            .await
            .unwrap();
        bed.ready("zoe").await;
        assert!(bed.logs_in(&role, "other").await);
    })
    .await;
}
