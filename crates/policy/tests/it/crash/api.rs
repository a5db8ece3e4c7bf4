//! Killed at every write to the API.

use stanchion_testkit::crash::{Report, crash_at_every_write};

use super::story::Story;

async fn crash(story: Story) -> Report {
    Box::pin(crash_at_every_write(&story)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(Story::Create).await;
    assert_eq!(
        report.writes, 6,
        "the finalizer, the plan, that it is applied, the Secret, that it was, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    crash(Story::Update).await;
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash(Story::Delete).await;
}
