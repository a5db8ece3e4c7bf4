//! The finalizer is written before anything is created outside, and finalizers of others are never changed.

use std::time::Duration;

use serde_json::json;
use stanchion_testkit::faults::{Call, CutPoint, Fault, Faults, Rule};
use stanchion_testkit::wait;

use super::bed::{Bed, How, PATIENCE, any, quick, role_name};

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
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let (proxy, admin) = bed.proxy().await;
        let faults = Faults::new().with(Rule::when(is_finalizer, Fault::refuse(500)));
        let how = How {
            admin,
            faults: faults.clone(),
            backoff: quick(),
            ..bed.how().await
        };
        let _operator = bed.start(how);
        bed.password("ann", "secret").await;
        bed.user("ann", &role, json!({})).await;
        wait::eventually(PATIENCE, "several refusals", async || {
            faults.calls().iter().filter(|call| call.disturbed).count() > 3
        })
        .await;
        assert_eq!(proxy.seen().attempts.len(), 0);
        faults.relent();
        let user = bed.ready("ann").await;
        assert_eq!(user.metadata.finalizers, Some(vec![OURS.to_owned()]));
        assert!(bed.logs_in(&role, "secret").await);
    })
    .await;
}

/// C5, A3: the role is dropped before the finalizer is removed.
#[tokio::test]
async fn the_finalizer_goes_after_the_role() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let faults = Faults::new();
        let how = How {
            faults: faults.clone(),
            backoff: quick(),
            ..bed.how().await
        };
        let _operator = bed.start(how);
        bed.password("ben", "secret").await;
        bed.user("ben", &role, json!({})).await;
        bed.ready("ben").await;
        faults.script(Rule::when(is_finalizer, Fault::refuse(500)));
        bed.delete("ben").await;
        wait::eventually(PATIENCE, "the role's end", async || !bed.has_role(&role).await).await;
        let user = bed.users().get("ben").await.unwrap();
        assert_eq!(user.metadata.finalizers, Some(vec![OURS.to_owned()]));
        faults.relent();
        bed.gone("ben").await;
    })
    .await;
}

/// C2: killed between the finalizer and the first statement.
#[tokio::test]
async fn an_object_whose_work_never_began_goes_without_a_trace() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let faults = Faults::new().with(Rule::write(1, Fault::Cut(CutPoint::Answered)));
    let operator = bed.operator_with(&faults).await;
    bed.password("cat", "secret").await;
    bed.user("cat", &role, json!({})).await;
    faults.cut().await;
    operator.kill().await;
    let user = bed.users().get("cat").await.unwrap();
    assert_eq!(user.metadata.finalizers, Some(vec![OURS.to_owned()]));
    assert!(!bed.has_role(&role).await);
    bed.delete("cat").await;
    let _operator = bed.operator().await;
    bed.gone("cat").await;
    assert!(!bed.has_role(&role).await);
}

/// C3: killed between the role and the status that records it.
#[tokio::test]
async fn a_role_that_no_status_tells_of_yet_is_found_again() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        // The finalizer, the announcement, and then the status.
        let faults = Faults::new().with(Rule::write(3, Fault::Cut(CutPoint::Before)));
        let operator = bed.operator_with(&faults).await;
        bed.password("dan", "secret").await;
        bed.user("dan", &role, json!({})).await;
        faults.cut().await;
        operator.kill().await;
        let oid = format!("SELECT oid FROM pg_roles WHERE rolname = '{role}'");
        let before = bed.server_one(&oid).await;
        assert_ne!(before, "");
        let _operator = bed.operator().await;
        let user = bed.ready("dan").await;
        assert_eq!(bed.server_one(&oid).await, before);
        assert_eq!(user.status.unwrap().adopted, Some(false));
        assert!(bed.logs_in(&role, "secret").await);
    })
    .await;
}

/// Without a status, the mark on the role proves its owner.
#[tokio::test]
async fn an_object_that_lost_its_status_still_takes_its_role_along() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let operator = bed.operator().await;
    bed.password("dora", "secret").await;
    bed.user("dora", &role, json!({})).await;
    bed.ready("dora").await;
    operator.kill().await;
    let wipe = kube::api::Patch::Merge(json!({ "status": null }));
    let params = kube::api::PatchParams::default();
    bed.users().patch_status("dora", &params, &wipe).await.unwrap();
    bed.delete("dora").await;
    let _operator = bed.operator().await;
    bed.gone("dora").await;
    assert!(!bed.has_role(&role).await);
}

/// C8: finalizers of others stay; and while they hold the object, nothing happens.
#[tokio::test]
async fn a_foreign_finalizer_is_left_alone() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let operator = bed.operator().await;
    bed.password("eve", "secret").await;
    bed.user("eve", &role, json!({})).await;
    bed.ready("eve").await;
    let hold = "test.io/hold";
    bed.patch("eve", json!({ "metadata": { "finalizers": [hold, OURS] } }))
        .await;
    bed.delete("eve").await;
    let only_theirs =
        |user: &stanchion_api::PostgresUser| user.metadata.finalizers.as_deref() == Some(&[hold.to_owned()]);
    wait::until(&bed.users(), "eve", PATIENCE, only_theirs).await;
    assert!(!bed.has_role(&role).await);
    let statements = bed.statements().len();
    bed.look_again(&operator, "eve").await;
    assert_eq!(bed.statements().len(), statements);
    assert!(only_theirs(&bed.users().get("eve").await.unwrap()));
    bed.patch("eve", json!({ "metadata": { "finalizers": null } }))
        .await;
    bed.gone("eve").await;
}

/// C9: a deletion during the creation of the role finds the role.
#[tokio::test]
async fn an_object_that_is_deleted_while_its_role_is_made_takes_it_along() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let announcement = |call: &Call| call.target.subresource == "status";
    let slow = Rule::when(announcement, Fault::Delay(Duration::from_secs(1))).times(1);
    let faults = Faults::new().with(slow);
    let _operator = bed.operator_with(&faults).await;
    bed.password("fia", "secret").await;
    bed.user("fia", &role, json!({})).await;
    wait::eventually(PATIENCE, "the announcement to be under way", async || {
        faults.calls().iter().any(announcement)
    })
    .await;
    bed.delete("fia").await;
    bed.gone("fia").await;
    assert!(!bed.has_role(&role).await);
}

/// C9: objects that are deleted right after their creation leave nothing behind, and cause no error.
#[tokio::test]
async fn objects_that_go_as_soon_as_they_come_leave_nothing_behind() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let operator = bed.operator().await;
    bed.password("fay", "secret").await;
    // Under many names, and repeatedly under one name.
    for n in 0..30 {
        let (name, username) = (format!("fay-{n}"), format!("{role}_{n}"));
        let secret = json!({ "passwordSecretRef": { "name": "fay" } });
        bed.user(&name, &username, secret).await;
        bed.delete(&name).await;
        bed.user("fay", &role, json!({})).await;
        bed.delete("fay").await;
        bed.gone("fay").await;
    }
    for n in 0..30 {
        bed.gone(&format!("fay-{n}")).await;
    }
    let left = format!(
        "SELECT string_agg(rolname || ' ' || coalesce(shobj_description(oid, 'pg_authid'), ''), '; ') \
         FROM pg_roles WHERE rolname LIKE '{role}%'"
    );
    // An object that gets its finalizer in the moment of its deletion may be deleted by the API server first.
    bed.wait()
        .eventually("no role to be left", async || match bed.server_one(&left).await {
            left if left.is_empty() => Ok(()),
            left => Err(left),
        })
        .await;
    operator.idle().await;
    assert!(!bed.log.text().contains(" ERROR "), "{}", bed.log.text());
}

/// C10: Kubernetes objects are garbage-collected by owner references.
#[tokio::test]
async fn the_secret_of_the_application_belongs_to_the_object() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    let spec = json!({ "passwordSecretRef": null, "password": { "generate": {} } });
    let user = bed.user("gus", &role, spec).await;
    bed.ready("gus").await;
    let secret = bed.secrets().get("gus-credentials").await.unwrap();
    let owner = &secret.metadata.owner_references.unwrap()[0];
    assert_eq!(
        (&owner.uid, owner.controller),
        (&user.metadata.uid.unwrap(), Some(true))
    );
    bed.delete("gus").await;
    bed.gone("gus").await;
    wait::gone(&bed.secrets(), "gus-credentials", PATIENCE).await;
}
