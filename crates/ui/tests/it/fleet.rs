//! The fleet and single objects, with full and with few permissions.

use serde_json::{Value, json};
use stanchion_testenv::WAIT_TIMEOUT;
use stanchion_testkit::cluster::{Grant, rule};
use stanchion_testkit::wait;

use crate::test_env::{Browser, TestEnv, user};

/// Waits until the page contains the text: a watch is a moment behind.
pub(crate) async fn shows(browser: &Browser, path: &str, text: &str) -> String {
    wait::within(WAIT_TIMEOUT)
        .eventually(&format!("{text} on {path}"), async || {
            let page = browser.get(path, &[]).await;
            if page.text.contains(text) {
                Ok(page.text)
            } else {
                Err(page.text)
            }
        })
        .await
}

#[tokio::test]
async fn objects_are_listed_filtered_and_shown() {
    let env = TestEnv::new("ui-fleet").await;
    for name in ["alice", "bob"] {
        env.apply(&user(name)).await;
    }
    let browser = env.open().await;
    let here = format!("postgresusers/{}", env.namespace);
    let page = shows(&browser, "/", &format!("{here}/alice")).await;
    assert!(page.contains(&format!("{here}/bob")), "{page}");
    let page = browser.get("/?q=ali", &[]).await.text;
    assert!(page.contains(&format!("{here}/alice")) && !page.contains(&format!("{here}/bob")));
    let page = browser.get("/?state=Ready", &[]).await.text;
    assert!(page.contains("Nothing matches"), "{page}");
    let page = browser.get(&format!("/o/{here}/alice"), &[]).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("has not reconciled it yet"), "{}", page.text);
    assert_eq!(browser.get(&format!("/o/{here}/nobody"), &[]).await.status, 404);
    assert_eq!(
        browser
            .get(&format!("/o/secrets/{}/x", env.namespace), &[])
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn hostile_text_stays_text_and_secrets_stay_secret() {
    let env = TestEnv::new("ui-hostile").await;
    env.apply(&user("alice")).await;
    let client = env.cluster.client().await;
    let users = env.api(client, "db.example.com", "PostgresUser", "postgresusers");
    let message = "<script>alert(1)</script><img src=x onerror=alert(2)> postgres://root:hunter2@db/x";
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "Bad", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1 })
    };
    let status = json!({ "phase": "Failed", "observedGeneration": 1,
                         "conditions": [condition("Ready", "False"), condition("Stalled", "True")] });
    env.report(&users, "alice", &status).await;
    let browser = env.open().await;
    for path in [
        "/".to_owned(),
        format!("/o/postgresusers/{}/alice", env.namespace),
    ] {
        let page = shows(&browser, &path, "&lt;script&gt;alert(1)").await;
        assert!(
            !page.contains("<script>alert") && !page.contains("<img"),
            "{page}"
        );
        assert!(!page.contains("hunter2"), "{page}");
    }
    let page = browser
        .get("/?q=%3Cscript%3Ealert(1)%3C/script%3E&kind=%22%3E", &[])
        .await;
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
}

/// A policy with a profile, a role and a membership.
pub(crate) fn policy() -> Value {
    json!({
        "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": "stock" },
        "spec": {
            "connection": { "secretRef": { "name": "db" } },
            "roles": [{ "name": "alice", "login": true }],
            "profiles": { "reader": { "grants": [
                { "privileges": ["USAGE"], "object": { "type": "schema" } },
                { "privileges": ["SELECT"], "object": { "type": "table", "name": "*" } },
            ] } },
            "schemas": [{ "name": "stock", "profiles": ["reader"] }],
            "memberships": [{ "role": "stock-reader", "members": [{ "name": "alice" }] }],
        },
    })
}

/// The page never reads the data of a Secret, and shows its name and age only.
#[tokio::test]
async fn a_secret_is_a_name_and_an_age() {
    let env = TestEnv::new("ui-secret").await;
    env.apply(&user("alice")).await;
    let client = env.cluster.client().await;
    let users = env.api(client, "db.example.com", "PostgresUser", "postgresusers");
    let uid = users.get("alice").await.unwrap().metadata.uid.unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": { "password": "hunter2-in-a-secret" },
        "metadata": { "name": "alice-login", "ownerReferences": [
            { "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "name": "alice", "uid": uid },
        ] },
    });
    env.apply(&secret).await;
    let browser = env.open().await;
    let path = format!("/o/postgresusers/{}/alice", env.namespace);
    let page = shows(&browser, &path, "alice-login").await;
    assert!(!page.contains("hunter2"), "{page}");
    let encoded = "aHVudGVyMi1pbi1hLXNlY3JldA"; // the password in base64
    assert!(!page.contains(encoded), "{page}");
}

#[tokio::test]
async fn few_permissions_show_little_and_say_so() {
    let env = TestEnv::new("ui-rights").await;
    env.apply(&user("alice")).await;
    let grant = Grant::In(
        env.namespace.clone(),
        vec![rule(
            "db.example.com",
            &["postgresusers"],
            &["get", "list", "watch"],
        )],
    );
    let somebody = env.cluster.user(&env.namespace, "somebody", &[grant]).await;
    let browser = env.open_as(somebody.client().await).await;
    let page = shows(&browser, "/", "alice").await;
    assert!(
        page.contains("supabaseprojects") && page.contains("you may not list them"),
        "{page}"
    );
    let page = browser
        .get(&format!("/o/postgresusers/{}/alice", env.namespace), &[])
        .await
        .text;
    assert!(
        page.contains("Not everything is shown, or current") && page.contains("events"),
        "{page}"
    );
}

#[tokio::test]
async fn the_access_of_a_policy_is_shown() {
    let env = TestEnv::new("ui-access").await;
    env.apply(&policy()).await;
    let browser = env.open().await;
    let path = format!("/o/postgrespolicies/{}/stock", env.namespace);
    let page = browser.get(&path, &[]).await.text;
    assert!(page.contains(&format!("{path}/access")), "{page}");
    let page = browser
        .get(&format!("{path}/access?schema=stock&table=items"), &[])
        .await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(
        page.text.contains("<svg") && page.text.contains("stock-reader"),
        "{}",
        page.text
    );
    assert!(page.text.contains("2 roles read"), "{}", page.text);
    assert_eq!(
        browser
            .get(&format!("/o/postgresusers/{}/stock/access", env.namespace), &[])
            .await
            .status,
        404
    );
}
