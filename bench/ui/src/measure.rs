//! First paint with many objects, and the time until a change is visible.

use std::time::{SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use futures::stream;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use stanchion_fleet::cluster::Cluster as Read;
use stanchion_fleet::kinds::Subject;
use stanchion_testkit::browser::Browser;
use stanchion_testkit::cluster::Cluster;
use stanchion_ui::Server;

pub(crate) async fn run(objects: usize, rounds: usize) {
    let cluster = Cluster::start().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("bench-ui").await;
    let kind = Subject::parse("postgresuser").unwrap().kind;
    let users: Api<DynamicObject> = Api::namespaced_with(cluster.client().await, &namespace, &kind.resource);
    fill(&users, objects).await;
    let read = Read {
        client: cluster.client().await,
        url: "https://bench.example".to_owned(),
        namespace: Some(namespace),
    };
    let server = Server::start(read, 0).await.unwrap();
    let Some(browser) = Browser::start().await else {
        println!("chromium and chromedriver are missing: make browser");
        return;
    };
    browser.open(server.address()).await;
    let all = format!("return document.querySelectorAll('.row').length === {objects}");
    browser.until("all objects on the page", &all).await;
    let origin = server.address().split("?token").next().unwrap().to_owned();
    let mut paints = Vec::new();
    let mut responses = Vec::new();
    for _ in 0..rounds {
        browser.open(&origin).await;
        let painted = "return performance.getEntriesByName('first-contentful-paint').length > 0";
        browser.until("the first paint", painted).await;
        paints.push(
            number(
                &browser,
                "return performance.getEntriesByName('first-contentful-paint')[0].startTime",
            )
            .await,
        );
        responses.push(
            number(
                &browser,
                "return performance.getEntriesByType('navigation')[0].responseEnd",
            )
            .await,
        );
    }
    browser
        .until(
            "the stream",
            "return document.querySelector('.live').dataset.state === 'on'",
        )
        .await;
    let mut changes = Vec::new();
    for round in 0..rounds {
        changes.push(change(&browser, &users, round % objects.max(1), round).await);
    }
    println!("| {objects} objects | median | worst |");
    println!("|---|---:|---:|");
    row("page received", &mut responses);
    row("first contentful paint", &mut paints);
    row("change to page", &mut changes);
}

fn row(name: &str, values: &mut [f64]) {
    values.sort_by(f64::total_cmp);
    let median = values.get(values.len() / 2).copied().unwrap_or_default();
    let worst = values.last().copied().unwrap_or_default();
    println!("| {name} | {median:.0} ms | {worst:.0} ms |");
}

async fn number(browser: &Browser, script: &str) -> f64 {
    browser.run(script).await.as_f64().unwrap()
}

async fn fill(users: &Api<DynamicObject>, objects: usize) {
    stream::iter(0..objects)
        .for_each_concurrent(16, async |number| {
            let name = format!("user-{number:04}");
            let user = json!({
                "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name },
                "spec": { "username": name.replace('-', "_"), "database": "app", "privileges": ["CONNECT"], "password": { "generate": {} } },
            });
            users
                .create(&PostParams::default(), &serde_json::from_value(user).unwrap())
                .await
                .unwrap();
            report(users, &name, "all is well").await;
        })
        .await;
}

async fn report(users: &Api<DynamicObject>, name: &str, message: &str) {
    let ready = message == "all is well";
    let condition = json!({ "type": "Ready", "status": if ready { "True" } else { "False" }, "reason": "Bench",
                            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1 });
    let status = json!({ "status": { "phase": if ready { "Ready" } else { "Creating" }, "observedGeneration": 1,
                                     "conditions": [condition] } });
    users
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

/// Milliseconds from a write to the cluster until its text is in the page, as the page itself notices it.
async fn change(browser: &Browser, users: &Api<DynamicObject>, number: usize, round: usize) -> f64 {
    let words = format!("bench round {round} reached the page");
    let watch = format!(
        "window.seen = 0; const look = () => {{ if (!window.seen && document.querySelector('main').textContent.includes('{words}')) \
         window.seen = Date.now(); }}; new MutationObserver(look).observe(document.querySelector('main'), \
         {{ childList: true, subtree: true, characterData: true }}); return true"
    );
    browser.run(&watch).await;
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
        * 1000.0;
    report(users, &format!("user-{number:04}"), &words).await;
    browser
        .until("the change on the page", "return window.seen > 0")
        .await;
    let seen = browser.run("return window.seen").await.as_f64().unwrap();
    seen - since
}
