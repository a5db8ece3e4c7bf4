//! Approves and rejects plans as the user.

use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;
use stanchion_testkit::cluster::{Grant, rule};

use crate::test_env::{Browser, TestEnv};

const READ: &[&str] = &["get", "list", "watch"];

pub(crate) struct Plan {
    pub(crate) env: TestEnv,
    api: Api<DynamicObject>,
    pub(crate) path: String,
}

impl Plan {
    pub(crate) async fn new(name: &str) -> Self {
        let env = TestEnv::new(name).await;
        let plan = json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicyPlan", "metadata": { "name": "stock-1" },
            "spec": { "policyRef": { "name": "stock" }, "policyGeneration": 1, "reconciliationMode": "authoritative",
                      "managedDatabaseIdentity": "1/1" },
        });
        env.apply(&plan).await;
        let client = env.cluster.client().await;
        let api = env.api(client, "pgroles.io", "PostgresPolicyPlan", "postgrespolicyplans");
        let status = json!({ "phase": "Pending", "changeDigest": "abc",
                             "sqlInline": "GRANT SELECT ON TABLE \"stock\".\"items\" TO \"reader\";" });
        env.report(&api, "stock-1", &status).await;
        let path = format!("/o/postgrespolicyplans/{}/stock-1", env.namespace);
        Self { env, api, path }
    }

    pub(crate) async fn annotation(&self, name: &str) -> Option<String> {
        let plan = self.api.get("stock-1").await.unwrap();
        plan.metadata.annotations.unwrap_or_default().remove(name)
    }

    /// A person who may read the plan, and may not decide.
    pub(crate) async fn reader(&self) -> kube::Client {
        let resources = ["postgrespolicyplans", "postgrespolicies"];
        let grant = Grant::In(
            self.env.namespace.clone(),
            vec![rule("pgroles.io", &resources, READ)],
        );
        let reader = self
            .env
            .cluster
            .user(&self.env.namespace, "reader", &[grant])
            .await;
        reader.client().await
    }

    /// The hidden fields of the form on the page, with this decision.
    async fn form(&self, browser: &Browser, decision: &str) -> String {
        let page = browser.get(&self.path, &[]).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let hidden = |name: &str| {
            let after = page.text.split(&format!("name=\"{name}\" value=\"")).nth(1);
            let value = after.unwrap_or_else(|| panic!("no field {name} in {}", page.text));
            value.split('"').next().unwrap().to_owned()
        };
        format!(
            "form={}&uid={}&decision={decision}",
            hidden("form"),
            hidden("uid")
        )
    }
}

#[tokio::test]
async fn a_plan_is_approved_or_rejected() {
    let plan = Plan::new("ui-approve").await;
    let browser = plan.env.open().await;
    let page = browser.get(&plan.path, &[]).await.text;
    assert!(page.contains("<span class=\"k\">GRANT</span>"), "{page}");
    let form = plan.form(&browser, "approve").await;
    let answer = browser.post(&format!("{}/decide", plan.path), &form).await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    assert_eq!(answer.headers["location"], plan.path.as_str());
    assert_eq!(
        plan.annotation("pgroles.io/approved").await.as_deref(),
        Some("true")
    );
    let page = browser.get(&plan.path, &[]).await.text;
    assert!(page.contains("Approved.") && !page.contains("/decide"), "{page}");

    let other = Plan::new("ui-reject").await;
    let browser = other.env.open().await;
    let form = other.form(&browser, "reject").await;
    browser.post(&format!("{}/decide", other.path), &form).await;
    assert_eq!(
        other.annotation("pgroles.io/rejected").await.as_deref(),
        Some("true")
    );
    assert_eq!(other.annotation("pgroles.io/approved").await, None);
}

#[tokio::test]
async fn without_the_permission_nothing_changes_and_the_page_says_why() {
    let plan = Plan::new("ui-no-approve").await;
    let namespace = plan.env.namespace.clone();
    let browser = plan.env.open_as(plan.reader().await).await;
    let form = plan.form(&browser, "approve").await;
    let answer = browser.post(&format!("{}/decide", plan.path), &form).await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    assert!(
        answer
            .text
            .contains("your user lacks the permission to patch postgrespolicyplans")
            && answer.text.contains("Nothing was changed"),
        "{}",
        answer.text
    );
    // The answer to a form is not read again, and leads back to the plan.
    assert!(!answer.text.contains("data-live"), "{}", answer.text);
    assert!(answer.text.contains("Back to the plan"), "{}", answer.text);
    assert_eq!(plan.annotation("pgroles.io/approved").await, None);

    let grant = Grant::In(
        namespace.clone(),
        vec![rule(
            "pgroles.io",
            &["postgrespolicyplans"],
            &["get", "list", "watch", "patch"],
        )],
    );
    let approver = plan.env.cluster.user(&namespace, "approver", &[grant]).await;
    let browser = plan.env.open_as(approver.client().await).await;
    let form = plan.form(&browser, "approve").await;
    let answer = browser.post(&format!("{}/decide", plan.path), &form).await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    assert_eq!(
        plan.annotation("pgroles.io/approved").await.as_deref(),
        Some("true")
    );
}

/// A website in the same browser can send a form to loopback. It has neither the cookie nor the form's secret.
#[tokio::test]
async fn another_site_cannot_decide() {
    let plan = Plan::new("ui-csrf").await;
    let browser = plan.env.open().await;
    let decide = format!("{}/decide", plan.path);
    let form = plan.form(&browser, "approve").await;
    let evil: &[(&str, &str)] = &[("origin", "http://evil.example")];
    assert_eq!(browser.post_with(&decide, evil, &form).await.status, 403);
    assert_eq!(browser.post_with(&decide, &[], &form).await.status, 403);
    assert_eq!(
        browser
            .post_with(&decide, &[("origin", "null")], &form)
            .await
            .status,
        403
    );
    let forged = form.replacen("form=", "form=0", 1);
    assert_eq!(browser.post(&decide, &forged).await.status, 403);
    assert_eq!(browser.get(&format!("{decide}?{form}"), &[]).await.status, 405);
    assert_eq!(plan.annotation("pgroles.io/approved").await, None);
}

/// A person who may write `ConfigMap`s in the namespace must not choose what another person approves.
#[tokio::test]
async fn sql_that_is_not_the_plans_is_not_offered_for_approval() {
    let plan = Plan::new("ui-altered").await;
    // gzip of "SELECT 1;" as in a plan, and of "SELECT 2;".
    let (genuine, other) = (
        "H4sIAAAAAAACAwt29XF1DlEwtAYAXDOyBAkAAAA=",
        "H4sIAAAAAAACAwt29XF1DlEwsgYAn2CfLwkAAAA=",
    );
    let map = |content: &str| {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "stock-1-sql" },
                "binaryData": { "plan.sql.gz": content } })
    };
    plan.env.apply(&map(genuine)).await;
    let status = json!({
        "sqlInline": null, "sqlRef": { "name": "stock-1-sql", "key": "plan.sql.gz", "compression": "gzip" },
        "sqlOriginalBytes": 9,
        "redactedSqlHash": "17db4fd369edb9244b9f91d9aeed145c3d04ad8ba6e95d06247f07a63527d11a",
    });
    plan.env.report(&plan.api, "stock-1", &status).await;
    let browser = plan.env.open().await;
    let page = browser.get(&plan.path, &[]).await.text;
    assert!(
        page.contains("<span class=\"k\">SELECT</span>") && page.contains("/decide"),
        "{page}"
    );

    plan.env.apply(&map(other)).await;
    let page = browser.get(&plan.path, &[]).await.text;
    assert!(page.contains("cannot be approved here"), "{page}");
    assert!(!page.contains("value=\"approve\""), "{page}");
    assert!(!page.contains("SELECT"), "{page}");

    // A form that was opened before the change approves nothing either. It still rejects.
    let form = plan.form(&browser, "approve").await;
    let decide = format!("{}/decide", plan.path);
    let answer = browser.post(&decide, &form).await;
    assert_eq!(answer.status, 409, "{}", answer.text);
    assert!(
        answer.text.contains("was not approved") && answer.text.contains("Nothing was changed"),
        "{}",
        answer.text
    );
    assert_eq!(plan.annotation("pgroles.io/approved").await, None);
    let form = plan.form(&browser, "reject").await;
    assert_eq!(browser.post(&decide, &form).await.status, 303);
    assert_eq!(
        plan.annotation("pgroles.io/rejected").await.as_deref(),
        Some("true")
    );
}

/// Who may not read the `ConfigMap` with the SQL would approve blindly.
#[tokio::test]
async fn sql_that_may_not_be_read_is_not_approved() {
    let plan = Plan::new("ui-unread").await;
    let namespace = plan.env.namespace.clone();
    let status = json!({
        "sqlInline": null, "sqlRef": { "name": "stock-1-sql", "key": "plan.sql.gz", "compression": "gzip" },
        "sqlOriginalBytes": 9, "redactedSqlHash": "00",
    });
    plan.env.report(&plan.api, "stock-1", &status).await;
    let grant = Grant::In(
        namespace.clone(),
        vec![rule(
            "pgroles.io",
            &["postgrespolicyplans"],
            &["get", "list", "watch", "patch"],
        )],
    );
    let approver = plan.env.cluster.user(&namespace, "approver", &[grant]).await;
    let browser = plan.env.open_as(approver.client().await).await;
    let page = browser.get(&plan.path, &[]).await.text;
    assert!(
        page.contains("you may not get it") && !page.contains("value=\"approve\""),
        "{page}"
    );
    assert!(!page.contains("changes nothing"), "{page}");
    let form = plan.form(&browser, "approve").await;
    let answer = browser.post(&format!("{}/decide", plan.path), &form).await;
    assert_eq!(answer.status, 409, "{}", answer.text);
    assert_eq!(plan.annotation("pgroles.io/approved").await, None);
}

/// The permissions of `deploy/approvals.yaml` are enough to read what is approved.
#[test]
fn the_role_of_approvers_may_read_the_sql() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/approvals.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let role = text.split("\nkind: ClusterRole\n").nth(1).unwrap();
    let verbs = role.split("resources: [configmaps]\n").nth(1).unwrap();
    assert_eq!(verbs.lines().next().unwrap().trim(), "verbs: [get]");
}

/// A plan of the same name that replaced the one on the screen is not the plan that the user has read.
#[tokio::test]
async fn only_the_plan_that_was_read_is_approved() {
    let plan = Plan::new("ui-replaced").await;
    let browser = plan.env.open().await;
    let form = plan.form(&browser, "approve").await;
    let uid = form
        .split("uid=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap()
        .to_owned();
    let stale = form.replace(&uid, "00000000-0000-0000-0000-000000000000");
    let answer = browser.post(&format!("{}/decide", plan.path), &stale).await;
    assert_eq!(answer.status, 409, "{}", answer.text);
    assert!(answer.text.contains("did not approve"), "{}", answer.text);
    assert_eq!(plan.annotation("pgroles.io/approved").await, None);
}
