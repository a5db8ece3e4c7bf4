//! The page in a real browser. Without one, these tests are skipped and listed.

use futures::StreamExt as _;
use serde_json::json;
use stanchion_testkit::browser::{Browser, Scheme};

use crate::test_env::{TestEnv, user};

const LIVE: &str = "return document.querySelector('.live').dataset.state === 'on'";
const NAMES: &str = "return [...document.querySelectorAll('.row .title')].map((row) => row.textContent)";

#[tokio::test]
async fn the_page_is_used_by_keyboard_and_stays_current() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let env = TestEnv::new("ui-browser").await;
    for name in ["alice", "bob"] {
        env.apply(&user(name)).await;
    }
    let page = env.open().await;
    browser.open(&page.address()).await;
    browser.until("the stream", LIVE).await;
    let address = browser.run("return location.href").await;
    assert!(!address.as_str().unwrap().contains("token"), "{address}");
    assert_eq!(
        browser.run("return document.cookie").await,
        "",
        "no script can read the cookie"
    );
    browser
        .until(
            "the objects",
            "return document.querySelectorAll('.row').length === 2",
        )
        .await;

    // A new object appears without a reload, and the focus stays.
    browser.run("window.same = true").await;
    browser.press(&["j"]).await;
    assert_eq!(
        browser
            .run("return document.activeElement.querySelector('.title').textContent")
            .await,
        "alice"
    );
    env.apply(&user("aaron")).await;
    browser
        .until(
            "a new object",
            "return document.querySelectorAll('.row').length === 3",
        )
        .await;
    assert_eq!(browser.run(NAMES).await, json!(["aaron", "alice", "bob"]));
    assert_eq!(browser.run("return window.same").await, true);
    assert_eq!(
        browser
            .run("return document.activeElement.querySelector('.title').textContent")
            .await,
        "alice"
    );

    // Search keeps its place in the address and in a reload.
    browser.press(&["/", "b", "o", "b"]).await;
    browser
        .until(
            "the search",
            "return document.querySelectorAll('.row').length === 1",
        )
        .await;
    assert_eq!(browser.run("return location.search").await, "?q=bob");
    assert_eq!(browser.run("return document.activeElement.value").await, "bob");
    browser.run("location.reload()").await;
    browser
        .until(
            "the search",
            "return document.querySelector('#q')?.value === 'bob'",
        )
        .await;
    assert_eq!(browser.run(NAMES).await, json!(["bob"]));

    // j, Enter opens the object; u goes up; ? shows the keys.
    browser.press(&["j", "\u{E007}"]).await;
    browser
        .until(
            "the object",
            "return location.pathname.startsWith('/o/postgresusers/')",
        )
        .await;
    browser
        .until(
            "its page",
            "return document.querySelector('h1')?.textContent === 'bob'",
        )
        .await;
    browser.press(&["u"]).await;
    browser
        .until(
            "the fleet",
            "return location.pathname === '/' && !!document.querySelector('#help')",
        )
        .await;
    browser.press(&["?"]).await;
    browser
        .until("the help", "return document.querySelector('#help').open")
        .await;
}

#[tokio::test]
async fn a_plan_is_approved_with_a_click() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let plan = crate::decide::Plan::new("ui-click").await;
    let page = plan.env.open().await;
    browser.open(&page.address()).await;
    browser.until("the stream", LIVE).await;
    browser.open(&format!("{}{}", page.origin, plan.path)).await;
    browser
        .run("document.querySelector('button.primary').click()")
        .await;
    browser
        .until(
            "the decision",
            "return document.body.textContent.includes('Approved.')",
        )
        .await;
    assert_eq!(
        plan.annotation("pgroles.io/approved").await.as_deref(),
        Some("true")
    );
}

/// A page that followed the cluster would read the answer to its own form again, and send the form once more.
#[tokio::test]
async fn a_refused_decision_stays_on_the_screen_and_is_not_sent_again() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let plan = crate::decide::Plan::new("ui-refused").await;
    let page = plan.env.open_as(plan.reader().await).await;
    browser.open(&page.address()).await;
    browser.until("the stream", LIVE).await;
    browser.open(&format!("{}{}", page.origin, plan.path)).await;
    browser.until("the stream", LIVE).await;
    browser
        .run("document.querySelector('button.primary').click()")
        .await;
    browser
        .until(
            "the answer",
            "return location.pathname.endsWith('/decide') && document.body.textContent.includes('Refused.')",
        )
        .await;
    browser.run("window.same = true").await;
    // What a change in the cluster does to a page.
    browser.run("return refresh().then(() => true)").await;
    assert_eq!(browser.run("return window.same").await, true);
    assert_eq!(
        browser
            .run("return document.body.textContent.includes('Refused.')")
            .await,
        true
    );
    browser.run("document.querySelector('.notice a').click()").await;
    browser
        .until(
            "the plan",
            "return !location.pathname.endsWith('/decide') && !!document.querySelector('button.primary')",
        )
        .await;
    assert_eq!(plan.annotation("pgroles.io/approved").await, None);
}

#[tokio::test]
async fn every_page_is_accessible_in_both_colours_and_fits_a_phone() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let plan = crate::decide::Plan::new("ui-axe").await;
    plan.env.apply(&user("alice")).await;
    plan.env.apply(&crate::fleet::policy()).await;
    let page = plan.env.open().await;
    browser.open(&page.address()).await;
    browser.until("the stream", LIVE).await;
    let namespace = &plan.env.namespace;
    let paths = [
        "/".to_owned(),
        "/?kind=postgresusers&q=alice".to_owned(),
        format!("/o/postgresusers/{namespace}/alice"),
        plan.path.clone(),
        format!("/o/postgrespolicies/{namespace}/stock/access?schema=stock&table=items"),
        "/nothing".to_owned(),
    ];
    let mut problems: Vec<String> = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        browser.prefer(scheme).await;
        for path in &paths {
            browser.open(&format!("{}{path}", page.origin)).await;
            let Some(findings) = browser.accessibility().await else {
                return;
            };
            let serious = findings
                .iter()
                .filter(|finding| ["serious", "critical"].contains(&finding.impact.as_str()));
            problems.extend(serious.map(|finding| format!("{scheme:?} {path}: {finding:#?}")));
        }
    }
    browser.size(390, 844).await;
    for path in &paths {
        browser.open(&format!("{}{path}", page.origin)).await;
        let wide = browser
            .run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            .await;
        if wide != 0 {
            problems.push(format!("{path} is {wide} pixels too wide for a phone"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn a_thousand_objects_are_shown_and_searched() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let env = TestEnv::new("ui-thousand").await;
    futures::stream::iter(0..1000)
        .for_each_concurrent(16, async |number| {
            env.apply(&user(&format!("user-{number:04}"))).await;
        })
        .await;
    let page = env.open().await;
    browser.open(&page.address()).await;
    browser
        .until(
            "all objects",
            "return document.querySelectorAll('.row').length === 1000",
        )
        .await;
    browser.until("the stream", LIVE).await;
    browser.press(&["/", "0", "7", "3", "1"]).await;
    browser
        .until(
            "the search",
            "return document.querySelectorAll('.row').length === 1",
        )
        .await;
    assert_eq!(browser.run(NAMES).await, json!(["user-0731"]));
    // A new object that matches appears while the search is active.
    env.apply(&user("new-0731")).await;
    browser
        .until(
            "the new object",
            "return document.querySelectorAll('.row').length === 2",
        )
        .await;
}

#[tokio::test]
async fn a_graph_is_zoomed_and_stays_so() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let env = TestEnv::new("ui-zoom").await;
    env.apply(&crate::fleet::policy()).await;
    let page = env.open().await;
    browser.open(&page.address()).await;
    browser.until("the stream", LIVE).await;
    browser
        .open(&format!(
            "{}/o/postgrespolicies/{}/stock/access",
            page.origin, env.namespace
        ))
        .await;
    browser.until("the stream", LIVE).await;
    let view = "return document.querySelector('[data-graph]').getAttribute('viewBox')";
    let whole = browser.run(view).await;
    browser.press(&["+"]).await;
    let close = browser.run(view).await;
    assert_ne!(whole, close);
    // A change of the policy does not reset the zoom.
    let mut changed = crate::fleet::policy();
    changed["spec"]["roles"] = json!([{ "name": "alice", "login": true }, { "name": "zoe" }]);
    env.apply(&changed).await;
    browser
        .until(
            "the new role",
            "return document.querySelector('[data-graph]').textContent.includes('zoe')",
        )
        .await;
    assert_eq!(browser.run(view).await, close);
    browser.press(&["0"]).await;
    assert_ne!(browser.run(view).await, close);
}
