//! A converged policy causes no read, no write and no event.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT};

/// Intervals pass without a request to the API; each costs one statement.
#[tokio::test]
async fn an_unchanged_policy_costs_one_statement_and_no_request() {
    let env = TestEnv::new().await;
    let faults = Faults::new();
    let operator = env.operator_with(&faults).await;
    env.database_secret().await;
    let (role, schema) = (env.role("app"), env.role("s"));
    env.secret("passwords", json!({ "app": "hunter2" })).await;
    env.policy(
        "quiet",
        json!({
            "interval": "1s",
            "schemas": [{ "name": schema }],
            "roles": [{ "name": role, "login": true,
                        "password": { "secretRef": { "name": "passwords" }, "secretKey": "app" } }],
            "grants": [{ "role": role, "privileges": ["USAGE"], "object": { "type": "schema", "name": schema } }],
        }),
    )
    .await;
    let before = env.ready("quiet").await;
    faults.settled().await;
    operator.idle().await;
    let (calls, passes) = (faults.calls().len(), operator.passes());
    let statements = operator.total("stanchion_postgres_statements_total");
    wait::eventually(WAIT_TIMEOUT, "three more passes", async || {
        operator.passes() >= passes + 3
    })
    .await;
    operator.idle().await;
    let (asked, looks) = (
        operator.total("stanchion_postgres_statements_total") - statements,
        operator.passes() - passes,
    );
    assert_eq!(faults.calls().len(), calls, "{:?}", &faults.calls()[calls..]);
    assert_eq!(asked, looks, "one statement a pass");
    assert_eq!(
        env.get("quiet").await.metadata.resource_version,
        before.metadata.resource_version
    );
}

/// A restart reads and writes nothing.
#[tokio::test]
async fn a_restart_writes_nothing() {
    let env = TestEnv::new().await;
    let first = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    let generate = json!({ "name": role, "login": true, "password": { "generate": {} } });
    env.policy("again", json!({ "roles": [generate] })).await;
    let before = env.ready("again").await;
    first.kill().await;
    let sql = env.sql_writes();
    let faults = Faults::new();
    let second = env.operator_with(&faults).await;
    wait::eventually(WAIT_TIMEOUT, "a pass", async || second.passes() >= 1).await;
    second.idle().await;
    assert_eq!(faults.writes(), []);
    assert_eq!(env.sql_writes(), sql);
    assert_eq!(
        env.get("again").await.metadata.resource_version,
        before.metadata.resource_version
    );
}

/// Neither a status nor a Secret with changed metadata causes a reconcile.
#[tokio::test]
async fn irrelevant_changes_cause_no_reconcile() {
    let env = TestEnv::new().await;
    let faults = Faults::new();
    let operator = env.operator_with(&faults).await;
    env.database_secret().await;
    env.policy("touched", json!({ "roles": [{ "name": env.role("app") }] }))
        .await;
    env.ready("touched").await;
    faults.settled().await;
    operator.idle().await;
    let passes = operator.passes();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    env.patch("touched", label.clone()).await;
    // A status that somebody else writes does not cause one, either.
    let reviewed = json!({
        "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy",
        "status": { "conditions": [{
            "type": "Reviewed", "status": "True", "reason": "Fine", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    env.policies()
        .patch_status(
            "touched",
            &PatchParams::apply("somebody"),
            &Patch::Apply(&reviewed),
        )
        .await
        .unwrap();
    let patch = Patch::Merge(&label);
    let writes = (faults.writes().len(), env.sql_writes());
    env.secrets()
        .patch("db", &PatchParams::default(), &patch)
        .await
        .unwrap();
    wait::eventually(WAIT_TIMEOUT, "the Secret wakes", async || {
        operator.passes() > passes
    })
    .await;
    faults.settled().await;
    operator.idle().await;
    assert_eq!(
        operator.passes(),
        passes + 1,
        "neither its label nor its status wakes the policy"
    );
    assert_eq!((faults.writes().len(), env.sql_writes()), writes);
}
