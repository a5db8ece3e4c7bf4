//! Killed at every write to the API and at every statement, and disconnected at every statement, the operator reaches
//! the same end state.

mod scenario;
mod servers;

use stanchion_testenv::crash::{crash_at_every_statement, crash_at_every_write};

use scenario::ProjectScenario;

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash_at_every_write(ProjectScenario::Create).await;
    assert!(
        report.writes >= 17,
        "the Secret, the files, seven of each, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    let report = crash_at_every_write(ProjectScenario::Change).await;
    assert!(report.writes >= 4, "{report}");
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    let report = crash_at_every_write(ProjectScenario::Delete).await;
    assert_eq!(
        report.writes, 1,
        "what is left is an event, and only the finalizer goes: {report}"
    );
}

async fn crash_in_sql(scenario: ProjectScenario) {
    let report = crash_at_every_statement(scenario).await;
    assert!(report.writes > 1, "{report}");
}

#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash_in_sql(ProjectScenario::Create).await;
}

#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash_in_sql(ProjectScenario::Change).await;
}

#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash_in_sql(ProjectScenario::Delete).await;
}
