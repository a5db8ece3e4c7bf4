//! Killed at every write to the API.

use stanchion_testkit::crash::{Report, crash_at_every_write};

use super::scenario::CrashScenario;

async fn crash(scenario: CrashScenario) -> Report {
    Box::pin(crash_at_every_write(&scenario)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(CrashScenario::Create).await;
    assert_eq!(
        report.writes, 6,
        "the finalizer, the plan, that it is applied, the Secret, that it was, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    crash(CrashScenario::Update).await;
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash(CrashScenario::Delete).await;
}
