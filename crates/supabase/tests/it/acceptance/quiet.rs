//! A converged project causes no writes.

use std::time::Duration;

use serde_json::json;
use stanchion_api::SupabaseProject;

use super::shop;
use crate::test_env::TestEnv;

/// How long there must be no write.
const QUIET: Duration = Duration::from_secs(1);

/// The bench has the same with a thousand projects: see docs/supabase.
#[tokio::test]
async fn b14_projects_at_rest_cost_no_write() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    let names = ["one", "two", "three", "four"];
    for name in names {
        let create = format!("CREATE DATABASE {name}");
        env.db_env.server.execute("postgres", &create).await;
        let secret = format!("db-{name}");
        env.secret(&secret, env.secret_for(name)).await;
        env.project(name, json!({ "database": { "secretRef": { "name": secret } } }))
            .await;
    }
    for name in names {
        env.running(name).await;
    }
    operator.faults.quiet(QUIET).await;
    let (writes, passes) = (operator.faults.writes().len(), operator.passes());
    // Each is reconciled completely once more.
    for name in names {
        let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/reconcile-at": "now" } } });
        env.patch::<SupabaseProject>(name, asked).await;
    }
    let again = passes + u64::try_from(names.len()).unwrap();
    env.wait()
        .eventually("a pass each", async || operator.passes() >= again)
        .await;
    operator.idle().await;
    let after = operator.faults.writes();
    assert_eq!(after.len(), writes, "{:?}", after.get(writes..));
}

/// A restart finds everything unchanged, and writes nothing.
#[tokio::test]
async fn b14_a_restart_writes_nothing() {
    let (env, first, before) = shop(json!({})).await;
    first.kill().await;
    let second = env.operator().await;
    env.wait()
        .eventually("a pass", async || second.passes() > 0)
        .await;
    second.idle().await;
    let after = env.running("shop").await;
    assert_eq!(
        second.writes_to("shop"),
        [""; 0],
        "written although nothing had changed"
    );
    assert_eq!(after.status, before.status);
}
