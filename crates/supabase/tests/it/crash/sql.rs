//! Killed at every statement, and disconnected at every statement.

use stanchion_testkit::crash::{SqlScenario, crash_at_every_statement};
use stanchion_testkit::proxy::Proxy;

use super::story::{Story, Told};

impl SqlScenario for Story {
    fn proxy(told: &Told) -> &Proxy {
        &told.proxy
    }
}

async fn crash(story: Story) {
    let report = Box::pin(crash_at_every_statement(&story)).await;
    assert!(report.writes > 1, "{report}");
}

#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash(Story::Create).await;
}

#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash(Story::Change).await;
}

#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash(Story::Delete).await;
}
