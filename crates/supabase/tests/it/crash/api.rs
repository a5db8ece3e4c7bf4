//! Killed at every write to the API.

use stanchion_testkit::crash::{Report, crash_at_every_write};

use super::scenario::CrashScenario;

async fn crash(scenario: CrashScenario) -> Report {
    Box::pin(crash_at_every_write(&scenario)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(CrashScenario::Create).await;
    assert!(
        report.writes >= 17,
        "the Secret, the files, seven of each, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    let report = crash(CrashScenario::Change).await;
    assert!(report.writes >= 4, "{report}");
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    let report = crash(CrashScenario::Delete).await;
    assert_eq!(
        report.writes, 1,
        "what is left is an event, and only the finalizer goes: {report}"
    );
}
