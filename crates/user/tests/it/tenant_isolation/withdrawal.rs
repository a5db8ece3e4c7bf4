//! F19: an instance that no longer allows a namespace.

use serde_json::{Value, json};
use stanchion_api::PostgresInstance;
use stanchion_testkit::unique;
use stanchion_user::Openings;

use super::tenants::{InstanceAccess, Tenants};
use crate::test_env::{any, condition, message, role_name};

async fn allow(tenants: &Tenants, names: Value) {
    let spec = json!({ "allowedNamespaces": { "names": names } });
    tenants.bank.instance("main", spec).await;
}

/// The operators of this test watch one namespace each, so a person requests a reconcile of the guest's object. An
/// operator that watches the whole cluster is notified of the instance.
async fn look(tenants: &Tenants, name: &str) {
    let now = unique::name("now");
    tenants
        .evil
        .annotate(name, "db.example.com/reconcile-at", &now)
        .await;
}

/// a22: the logins end at once, the reason is reported, and the objects can be deleted; neither `suspend` nor an
/// invalid spec changes that. Allowed again, they work again.
#[tokio::test]
async fn a_withdrawn_permission_ends_the_logins() {
    let tenants = Tenants::new(any(), InstanceAccess::Guest, Openings::default()).await;
    let evil = &tenants.evil;
    let roles: Vec<String> = (0..3).map(|_| role_name()).collect();
    let server = evil.database.server();
    for (name, role) in ["plain", "idle", "wrong"].into_iter().zip(&roles) {
        tenants.tries(name, role, json!({})).await;
        evil.ready(name).await;
    }
    let logs_in = async |role: &str| server.connect(role, "p", &tenants.den).await.is_ok();
    let session = server.connect(&roles[0], "p", &tenants.den).await.unwrap();
    evil.patch("idle", json!({ "spec": { "suspend": true } })).await;
    let wrong = json!({ "spec": { "role": { "parameters": { "no name": "x" } } } });
    evil.patch("wrong", wrong).await;
    evil.condition("wrong", "Ready", "False", "InvalidSpec").await;
    assert!(logs_in(&roles[0]).await && logs_in(&roles[1]).await && logs_in(&roles[2]).await);

    allow(&tenants, json!([])).await;
    for (name, role) in ["plain", "idle", "wrong"].into_iter().zip(&roles) {
        look(&tenants, name).await;
        let user = evil
            .condition(name, "Ready", "False", "NamespaceNotAllowed")
            .await;
        assert!(message(&user, "Ready").contains("allowedNamespaces"), "{user:?}");
        assert!(!logs_in(role).await, "{name}");
    }
    assert!(
        session.simple_query("SELECT 1").await.is_err(),
        "the session has ended"
    );
    evil.delete("idle").await;
    evil.gone("idle").await;
    assert!(!evil.has_role(&roles[1]).await);

    allow(&tenants, json!([evil.namespace])).await;
    look(&tenants, "plain").await;
    look(&tenants, "wrong").await;
    evil.ready("plain").await;
    assert!(logs_in(&roles[0]).await);
    let user = evil.condition("wrong", "Ready", "False", "InvalidSpec").await;
    assert!(condition(&user, "Stalled").is_some());
}

/// A login that locks its own role, and one whose session was left by a pass that ended too early, do not outlive the
/// permission.
#[tokio::test]
async fn a_withdrawn_permission_ends_sessions_that_resist() {
    let tenants = Tenants::new(any(), InstanceAccess::Guest, Openings::default()).await;
    let evil = &tenants.evil;
    let server = evil.database.server();
    let mut sessions = Vec::new();
    for (name, does) in [
        ("locks", "BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'mine'"),
        ("lingers", "SELECT 1"),
    ] {
        let role = role_name();
        tenants.tries(name, &role, json!({})).await;
        evil.ready(name).await;
        let session = server.connect(&role, "p", &tenants.den).await.unwrap();
        session.batch_execute(does).await.unwrap();
        sessions.push((name, role, session));
    }
    evil.database
        .execute(&format!("ALTER ROLE {} NOLOGIN", sessions[1].1))
        .await;
    allow(&tenants, json!([])).await;
    for (name, role, session) in sessions {
        look(&tenants, name).await;
        evil.condition(name, "Ready", "False", "NamespaceNotAllowed")
            .await;
        assert!(session.simple_query("SELECT 1").await.is_err(), "{name}");
        assert!(server.connect(&role, "p", &tenants.den).await.is_err(), "{name}");
    }
}

/// A failure between the withdrawal and the new permission does not turn the lost login into drift, which `Report` leaves.
#[tokio::test]
async fn a_login_comes_back_after_a_failure_in_between() {
    let tenants = Tenants::new(any(), InstanceAccess::Guest, Openings::default()).await;
    let (evil, role) = (&tenants.evil, role_name());
    let spec = json!({ "driftPolicy": { "mode": "Report" } });
    tenants.tries("patient", &role, spec).await;
    evil.ready("patient").await;
    allow(&tenants, json!([])).await;
    look(&tenants, "patient").await;
    evil.condition("patient", "Ready", "False", "NamespaceNotAllowed")
        .await;
    // Another failure, before and after the permission is back.
    let bank = &tenants.bank;
    bank.secrets()
        .delete("main-admin", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    for names in [json!([]), json!([evil.namespace])] {
        let spec = json!({ "spec": { "allowedNamespaces": { "names": names } } });
        bank.base.patch::<PostgresInstance>("main", spec).await;
        look(&tenants, "patient").await;
        evil.condition("patient", "Ready", "False", "AdminSecretNotFound")
            .await;
    }
    allow(&tenants, json!([evil.namespace])).await;
    look(&tenants, "patient").await;
    evil.ready("patient").await;
    let server = evil.database.server();
    assert!(server.connect(&role, "p", &tenants.den).await.is_ok());
}

/// F19: a missing instance and one that does not allow the namespace look the same.
#[tokio::test]
async fn an_instance_of_another_namespace_looks_like_a_missing_one() {
    let tenants = Tenants::new(any(), InstanceAccess::Default, Openings::default()).await;
    allow(&tenants, json!([])).await;
    let mut said = Vec::new();
    for name in ["main", "nowhere"] {
        let reference = json!({ "name": name, "namespace": tenants.bank.namespace });
        let object = format!("asks-{name}");
        tenants.evil.password(&object, "p").await;
        tenants
            .evil
            .user(&object, &role_name(), json!({ "instanceRef": reference }))
            .await;
        let user = tenants
            .evil
            .condition(&object, "Ready", "False", "InstanceNotFound")
            .await;
        said.push(message(&user, "Ready").replace(name, "NAME"));
    }
    assert_eq!(said[0], said[1]);
}
