//! A converged policy causes no read, no write and no event.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::wait;

use super::bed::{Bed, PATIENCE};

/// Intervals pass without a request to the API; each costs one statement.
#[tokio::test]
async fn an_unchanged_policy_costs_one_statement_and_no_request() {
    let bed = Bed::new().await;
    let faults = Faults::new();
    let operator = bed.operator_with(&faults).await;
    bed.database_secret().await;
    let (role, schema) = (bed.role("app"), bed.role("s"));
    bed.secret("passwords", json!({ "app": "hunter2" })).await;
    bed.policy(
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
    let before = bed.ready("quiet").await;
    faults.settled().await;
    operator.idle().await;
    let (calls, passes) = (faults.calls().len(), operator.passes());
    let statements = operator.total("stanchion_postgres_statements_total");
    wait::eventually(PATIENCE, "three more passes", async || {
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
        bed.get("quiet").await.metadata.resource_version,
        before.metadata.resource_version
    );
}

/// A restart reads and writes nothing.
#[tokio::test]
async fn a_restart_writes_nothing() {
    let bed = Bed::new().await;
    let first = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    let generate = json!({ "name": role, "login": true, "password": { "generate": {} } });
    bed.policy("again", json!({ "roles": [generate] })).await;
    let before = bed.ready("again").await;
    first.kill().await;
    let sql = bed.sql_writes();
    let faults = Faults::new();
    let second = bed.operator_with(&faults).await;
    wait::eventually(PATIENCE, "a pass", async || second.passes() >= 1).await;
    second.idle().await;
    assert_eq!(faults.writes(), []);
    assert_eq!(bed.sql_writes(), sql);
    assert_eq!(
        bed.get("again").await.metadata.resource_version,
        before.metadata.resource_version
    );
}

/// Neither a status nor a Secret with changed metadata causes a reconcile.
#[tokio::test]
async fn what_changes_nothing_causes_nothing() {
    let bed = Bed::new().await;
    let faults = Faults::new();
    let operator = bed.operator_with(&faults).await;
    bed.database_secret().await;
    bed.policy("touched", json!({ "roles": [{ "name": bed.role("app") }] }))
        .await;
    bed.ready("touched").await;
    faults.settled().await;
    operator.idle().await;
    let passes = operator.passes();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    bed.patch("touched", label.clone()).await;
    // A status that somebody else writes does not cause one, either.
    let reviewed = json!({
        "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy",
        "status": { "conditions": [{
            "type": "Reviewed", "status": "True", "reason": "Fine", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    bed.policies()
        .patch_status(
            "touched",
            &PatchParams::apply("somebody"),
            &Patch::Apply(&reviewed),
        )
        .await
        .unwrap();
    let patch = Patch::Merge(&label);
    let writes = (faults.writes().len(), bed.sql_writes());
    bed.secrets()
        .patch("db", &PatchParams::default(), &patch)
        .await
        .unwrap();
    wait::eventually(PATIENCE, "the Secret wakes", async || operator.passes() > passes).await;
    faults.settled().await;
    operator.idle().await;
    assert_eq!(
        operator.passes(),
        passes + 1,
        "neither its label nor its status wakes the policy"
    );
    assert_eq!((faults.writes().len(), bed.sql_writes()), writes);
}
