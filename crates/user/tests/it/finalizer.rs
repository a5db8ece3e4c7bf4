//! The finalizer is written before anything is created outside, and finalizers of others are never changed.

use std::time::Duration;

use serde_json::json;
use stanchion_testkit::faults::{Call, CutPoint, Fault, Faults, Rule};
use stanchion_testkit::wait;

use super::test_env::{How, QUICK_BACKOFF, TestEnv, WAIT_TIMEOUT, any, role_name};

const OURS: &str = "db.example.com/postgresuser";

/// Writes to the object itself, which has the finalizers.
fn is_finalizer(call: &Call) -> bool {
    call.method.as_str() == "PATCH"
        && call.target.resource == "postgresusers"
        && call.target.subresource.is_empty()
}

/// C1, C15, A2, A3: the operator does not connect before the finalizer is written, and needs no further event
/// afterwards.
#[tokio::test]
async fn no_connection_is_made_before_the_finalizer_is_there() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let (proxy, admin) = env.proxy().await;
        let faults = Faults::new().with(Rule::when(is_finalizer, Fault::refuse(500)));
        let how = How {
            admin,
            faults: faults.clone(),
            backoff: QUICK_BACKOFF,
            ..env.how().await
        };
        let _operator = env.start(how);
        env.password("ann", "secret").await;
        env.user("ann", &role, json!({})).await;
        wait::eventually(WAIT_TIMEOUT, "several refusals", async || {
            faults.calls().iter().filter(|call| call.disturbed).count() > 3
        })
        .await;
        assert_eq!(proxy.seen().attempts.len(), 0);
        faults.relent();
        let user = env.ready("ann").await;
        assert_eq!(user.metadata.finalizers, Some(vec![OURS.to_owned()]));
        assert!(env.logs_in(&role, "secret").await);
    })
    .await;
}

/// C5, A3: the role is dropped before the finalizer is removed.
#[tokio::test]
async fn the_finalizer_goes_after_the_role() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let faults = Faults::new();
        let how = How {
            faults: faults.clone(),
            backoff: QUICK_BACKOFF,
            ..env.how().await
        };
        let _operator = env.start(how);
        env.password("ben", "secret").await;
        env.user("ben", &role, json!({})).await;
        env.ready("ben").await;
        faults.script(Rule::when(is_finalizer, Fault::refuse(500)));
        env.delete("ben").await;
        wait::eventually(WAIT_TIMEOUT, "the role's end", async || {
            !env.has_role(&role).await
        })
        .await;
        let user = env.users().get("ben").await.unwrap();
        assert_eq!(user.metadata.finalizers, Some(vec![OURS.to_owned()]));
        faults.relent();
        env.gone("ben").await;
    })
    .await;
}

/// C2: killed between the finalizer and the first statement.
#[tokio::test]
async fn an_object_without_a_role_is_deleted_without_cleanup() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let faults = Faults::new().with(Rule::write(1, Fault::Cut(CutPoint::Answered)));
    let operator = env.operator_with(&faults).await;
    env.password("cat", "secret").await;
    env.user("cat", &role, json!({})).await;
    faults.cut().await;
    operator.kill().await;
    let user = env.users().get("cat").await.unwrap();
    assert_eq!(user.metadata.finalizers, Some(vec![OURS.to_owned()]));
    assert!(!env.has_role(&role).await);
    env.delete("cat").await;
    let _operator = env.operator().await;
    env.gone("cat").await;
    assert!(!env.has_role(&role).await);
}

/// C3: killed between the role and the status that records it.
#[tokio::test]
async fn a_role_that_is_not_in_the_status_yet_is_found_again() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        // The finalizer, the status before the changes, and then the one after them.
        let faults = Faults::new().with(Rule::write(3, Fault::Cut(CutPoint::Before)));
        let operator = env.operator_with(&faults).await;
        env.password("dan", "secret").await;
        env.user("dan", &role, json!({})).await;
        faults.cut().await;
        operator.kill().await;
        let oid = format!("SELECT oid FROM pg_roles WHERE rolname = '{role}'");
        let before = env.server_one(&oid).await;
        assert_ne!(before, "");
        let _operator = env.operator().await;
        let user = env.ready("dan").await;
        assert_eq!(env.server_one(&oid).await, before);
        assert_eq!(user.status.unwrap().adopted, Some(false));
        assert!(env.logs_in(&role, "secret").await);
    })
    .await;
}

/// Without a status, the mark on the role proves its owner.
#[tokio::test]
async fn cleanup_drops_the_role_without_a_status() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("dora", "secret").await;
    env.user("dora", &role, json!({})).await;
    env.ready("dora").await;
    operator.kill().await;
    let wipe = kube::api::Patch::Merge(json!({ "status": null }));
    let params = kube::api::PatchParams::default();
    env.users().patch_status("dora", &params, &wipe).await.unwrap();
    env.delete("dora").await;
    let _operator = env.operator().await;
    env.gone("dora").await;
    assert!(!env.has_role(&role).await);
}

/// C8: finalizers of others stay; and while they hold the object, nothing happens.
#[tokio::test]
async fn a_foreign_finalizer_is_left_alone() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("eve", "secret").await;
    env.user("eve", &role, json!({})).await;
    env.ready("eve").await;
    let hold = "test.io/hold";
    env.patch("eve", json!({ "metadata": { "finalizers": [hold, OURS] } }))
        .await;
    env.delete("eve").await;
    let only_theirs =
        |user: &stanchion_api::PostgresUser| user.metadata.finalizers.as_deref() == Some(&[hold.to_owned()]);
    wait::until(&env.users(), "eve", WAIT_TIMEOUT, only_theirs).await;
    assert!(!env.has_role(&role).await);
    let statements = env.statements().len();
    env.look_again(&operator, "eve").await;
    assert_eq!(env.statements().len(), statements);
    assert!(only_theirs(&env.users().get("eve").await.unwrap()));
    env.patch("eve", json!({ "metadata": { "finalizers": null } }))
        .await;
    env.gone("eve").await;
}

/// C9: a deletion during the creation of the role finds the role.
#[tokio::test]
async fn deletion_during_creation_drops_the_role() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let status_write = |call: &Call| call.target.subresource == "status";
    let slow = Rule::when(status_write, Fault::Delay(Duration::from_secs(1))).times(1);
    let faults = Faults::new().with(slow);
    let _operator = env.operator_with(&faults).await;
    env.password("fia", "secret").await;
    env.user("fia", &role, json!({})).await;
    wait::eventually(
        WAIT_TIMEOUT,
        "the first status write to be under way",
        async || faults.calls().iter().any(status_write),
    )
    .await;
    env.delete("fia").await;
    env.gone("fia").await;
    assert!(!env.has_role(&role).await);
}

/// C9: objects that are deleted right after their creation leave nothing behind, and cause no error.
#[tokio::test]
async fn objects_deleted_at_once_leave_nothing_behind() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("fay", "secret").await;
    // Under many names, and repeatedly under one name.
    for n in 0..30 {
        let (name, username) = (format!("fay-{n}"), format!("{role}_{n}"));
        let secret = json!({ "passwordSecretRef": { "name": "fay" } });
        env.user(&name, &username, secret).await;
        env.delete(&name).await;
        env.user("fay", &role, json!({})).await;
        env.delete("fay").await;
        env.gone("fay").await;
    }
    for n in 0..30 {
        env.gone(&format!("fay-{n}")).await;
    }
    let left = format!(
        "SELECT string_agg(rolname || ' ' || coalesce(shobj_description(oid, 'pg_authid'), ''), '; ') \
         FROM pg_roles WHERE rolname LIKE '{role}%'"
    );
    // An object that gets its finalizer in the moment of its deletion may be deleted by the API server first.
    env.wait()
        .eventually("no role to be left", async || match env.server_one(&left).await {
            left if left.is_empty() => Ok(()),
            left => Err(left),
        })
        .await;
    operator.idle().await;
    assert!(!env.log.text().contains(" ERROR "), "{}", env.log.text());
}

/// C10: Kubernetes objects are garbage-collected by owner references.
#[tokio::test]
async fn the_secret_of_the_application_belongs_to_the_object() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    let spec = json!({ "passwordSecretRef": null, "password": { "generate": {} } });
    let user = env.user("gus", &role, spec).await;
    env.ready("gus").await;
    let secret = env.secrets().get("gus-credentials").await.unwrap();
    let owner = &secret.metadata.owner_references.unwrap()[0];
    assert_eq!(
        (&owner.uid, owner.controller),
        (&user.metadata.uid.unwrap(), Some(true))
    );
    env.delete("gus").await;
    env.gone("gus").await;
    wait::gone(&env.secrets(), "gus-credentials", WAIT_TIMEOUT).await;
}
