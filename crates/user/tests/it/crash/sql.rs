//! A4: killed at every statement, and disconnected at every statement.

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
    assert!(report.writes > 3, "{report}");
}

/// A4, C13: a creation, including a COMMIT whose answer is lost.
#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash(Story::Create).await;
}

/// A4, A9: a change.
#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash(Story::Update).await;
}

/// A4: a new password.
#[tokio::test]
async fn a_new_password_stopped_at_any_statement_is_set() {
    crash(Story::Password).await;
}

/// A4: a deletion.
#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash(Story::Delete).await;
}

/// A4: the creation of a database, which cannot run in a transaction.
#[tokio::test]
async fn a_database_stopped_at_any_statement_is_ours() {
    crash(Story::Database).await;
}

/// A4: the deletion of that database.
#[tokio::test]
async fn a_database_stopped_at_any_statement_goes() {
    crash(Story::DeleteDatabase).await;
}
