//! The acceptance checks: A1 to A23 are what users of the original rely on, B1 to B15 what it should have done. A
//! test's name begins with the number of its check; docs/supabase/checks.md describes each, and lists those that cannot
//! be tested here.

mod api;
mod children;
mod database;
mod deletion;
mod gateway;
mod keys;
mod kong;
mod kong_plugins;
mod mail_links;
mod options;
mod quiet;
mod settings;
mod status;
mod storage;
mod takeover;
mod webhook;

use serde_json::Value;
use stanchion_api::SupabaseProject;

use crate::test_env::{Running, TestEnv};

/// The seven components of every project: the suffix of the Deployment's name, and the component's label.
const COMPONENTS: [(&str, &str); 7] = [
    ("auth", "authentication"),
    ("kong", "api-gateway"),
    ("meta", "metadata"),
    ("postgrest", "rest-api"),
    ("realtime", "realtime"),
    ("storage", "storage-api"),
    ("studio", "studio"),
];

/// The fields of these seven in the spec.
const FIELDS: [&str; 7] = [
    "kong",
    "auth",
    "realtime",
    "postgrest",
    "storageApi",
    "meta",
    "studio",
];

/// The five labels of every object of a component, which also select its pods.
fn labels(project: &str, name: &str, component: &str) -> Value {
    serde_json::json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/instance": project,
        "app.kubernetes.io/component": component, "app.kubernetes.io/part-of": "supabase",
        "app.kubernetes.io/managed-by": "supabase-operator",
    })
}

/// An environment in which the project `shop` runs.
async fn shop(more: Value) -> (TestEnv, Running, SupabaseProject) {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", more).await;
    let project = env.running("shop").await;
    (env, operator, project)
}
