//! Takes the pictures of the documentation: from a running demo, with everything that is real in it.

use std::path::Path;
use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use stanchion_fleet::kinds::Subject;
use stanchion_testkit::browser::{Browser, Scheme};
use stanchion_testkit::process::{Launch, Signal};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::wait;

const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) async fn run(binary: &Path, folder: &Path) {
    let scratch = Scratch::new("stanchion-pictures-").unwrap();
    let kubeconfig = scratch.path().join("kubeconfig");
    let demo = Launch::new(std::path::absolute(binary).unwrap(), scratch.path().join("log"))
        .args(["sandbox", "--kubeconfig"])
        .args([kubeconfig.as_os_str()])
        .parting(Signal::Term)
        .spawn()
        .unwrap();
    wait::within(DEADLINE)
        .eventually("the demo", async || {
            let log = demo.log();
            if log.contains("All ready after") {
                Ok(())
            } else {
                Err(log)
            }
        })
        .await;
    let log = demo.log();
    let address = log.lines().find_map(|line| line.strip_prefix("Open ")).unwrap();
    let origin = address.split("/?").next().unwrap();
    let plan = pending(&kubeconfig).await;
    let Some(browser) = Browser::start().await else {
        println!("chromium and chromedriver are missing: make browser");
        return;
    };
    std::fs::create_dir_all(folder).unwrap();
    browser.open(address).await;
    browser
        .until("the fleet", "return document.querySelectorAll('.row').length > 4")
        .await;
    let policy = "/o/postgrespolicies/default/stock/access?schema=warehouse&table=parts".to_owned();
    let project = "/o/supabaseprojects/default/shop".to_owned();
    let pictures = [
        ("fleet", "/".to_owned(), Scheme::Light, (1200, 800)),
        ("object", project, Scheme::Dark, (1200, 800)),
        ("plan", plan, Scheme::Light, (1200, 800)),
        ("access", policy, Scheme::Light, (1200, 800)),
    ];
    for (name, path, scheme, (width, height)) in pictures {
        browser.size(width, height).await;
        browser.prefer(scheme).await;
        browser.open(&format!("{origin}{path}")).await;
        browser
            .until(
                "the stream",
                "return document.querySelector('.live')?.dataset.state === 'on'",
            )
            .await;
        let file = folder.join(format!("{name}.png"));
        browser.screenshot(&file).await;
        println!("{}", file.display());
    }
}

/// A policy that waits for approval, and a user whose password is missing; returns the path of the plan.
async fn pending(kubeconfig: &Path) -> String {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();
    let policy = Subject::parse("postgrespolicy").unwrap().kind;
    let policies: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &policy.resource);
    let object = json!({
        "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": "audit" },
        "spec": {
            "connection": { "secretRef": { "name": "stock-database" }, "secretKey": "uri" },
            "approval": "manual",
            "reconciliation_mode": "additive",
            "roles": [{ "name": "auditor", "login": true, "comment": "Reads for the annual audit" }, { "name": "audit-team" }],
            "grants": [
                { "role": "audit-team", "privileges": ["USAGE"], "object": { "type": "schema", "name": "public" } },
                { "role": "audit-team", "privileges": ["SELECT"], "object": { "type": "table", "schema": "public", "name": "*" } },
            ],
            "memberships": [{ "role": "audit-team", "members": [{ "name": "auditor" }] }],
        },
    });
    let parameters = PatchParams::apply("stanchion-pictures").force();
    policies
        .patch("audit", &parameters, &Patch::Apply(&object))
        .await
        .unwrap();
    let user = Subject::parse("postgresuser").unwrap().kind;
    let users: Api<DynamicObject> = Api::namespaced_with(client, "default", &user.resource);
    let object = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "billing" },
        "spec": { "instanceRef": { "name": "local" }, "username": "billing", "database": "app", "privileges": ["CONNECT"],
                  "passwordSecretRef": { "name": "billing-password" } },
    });
    users
        .patch("billing", &parameters, &Patch::Apply(&object))
        .await
        .unwrap();
    let name = wait::within(DEADLINE)
        .eventually("a plan", async || {
            let policy = policies.get("audit").await.unwrap();
            let plan = policy.data.pointer("/status/current_plan_ref/name").cloned();
            plan.and_then(|name| name.as_str().map(str::to_owned))
                .ok_or_else(|| policy.data.to_string())
        })
        .await;
    format!("/o/postgrespolicyplans/default/{name}")
}
