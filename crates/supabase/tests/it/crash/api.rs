//! Killed at every write to the API.

use stanchion_testkit::crash::{Report, crash_at_every_write};

use super::story::Story;

async fn crash(story: Story) -> Report {
    Box::pin(crash_at_every_write(&story)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(Story::Create).await;
    assert!(
        report.writes >= 17,
        "the Secret, the files, seven of each, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    let report = crash(Story::Change).await;
    assert!(report.writes >= 4, "{report}");
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    let report = crash(Story::Delete).await;
    assert!(
        report.writes >= 2,
        "what is left is told, and the finalizer goes: {report}"
    );
}
