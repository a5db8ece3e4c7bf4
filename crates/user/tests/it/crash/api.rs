//! A4: killed at every write to the API.

use stanchion_testkit::crash::{Report, crash_at_every_write};

use super::scenario::CrashScenario;

async fn crash(scenario: CrashScenario) -> Report {
    Box::pin(crash_at_every_write(&scenario)).await
}

/// A4, C3: between any two writes of a creation.
#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(CrashScenario::Create).await;
    assert_eq!(
        report.writes, 3,
        "the finalizer, the announcement, the status: {report}"
    );
}

/// A4: a password that is in no Secret is lost with the process.
#[tokio::test]
async fn a_generated_password_survives_any_crash() {
    let report = crash(CrashScenario::Generate).await;
    assert_eq!(report.writes, 4, "and the Secret: {report}");
}

/// A4, A9: between any two writes of a change.
#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    crash(CrashScenario::Update).await;
}

/// A4: between any two writes of a rotation.
#[tokio::test]
async fn a_new_password_killed_at_any_write_is_set() {
    crash(CrashScenario::Password).await;
}

/// A4: a database that was created is recognised as ours, independent of the status.
#[tokio::test]
async fn a_database_made_at_any_write_is_ours() {
    crash(CrashScenario::Database).await;
}

/// A4: and it is dropped with its object.
#[tokio::test]
async fn a_database_goes_at_any_write() {
    crash(CrashScenario::DeleteDatabase).await;
}

/// A4: between any two writes of a deletion.
#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash(CrashScenario::Delete).await;
}
