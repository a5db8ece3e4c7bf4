//! Killed at every write to the API and at every statement, and disconnected at every statement, the operator reaches
//! the same end state.

mod scenario;

use stanchion_testenv::crash::{crash_at_every_statement, crash_at_every_write};

use scenario::PolicyScenario;

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash_at_every_write(PolicyScenario::Create).await;
    assert_eq!(
        report.writes, 6,
        "the finalizer, the plan, that it is applied, the Secret, that it was, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    crash_at_every_write(PolicyScenario::Update).await;
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash_at_every_write(PolicyScenario::Delete).await;
}

async fn crash_in_sql(scenario: PolicyScenario) {
    let report = crash_at_every_statement(scenario).await;
    assert!(report.writes > 2, "{report}");
}

#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash_in_sql(PolicyScenario::Create).await;
}

#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash_in_sql(PolicyScenario::Update).await;
}

#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash_in_sql(PolicyScenario::Delete).await;
}
