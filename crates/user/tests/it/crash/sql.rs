//! A4: killed at every statement, and disconnected at every statement.

use stanchion_testkit::crash::{SqlScenario, crash_at_every_statement};
use stanchion_testkit::proxy::Proxy;

use super::scenario::{CrashRun, CrashScenario};

impl SqlScenario for CrashScenario {
    fn proxy(run: &CrashRun) -> &Proxy {
        &run.proxy
    }
}

async fn crash(scenario: CrashScenario) {
    let report = Box::pin(crash_at_every_statement(&scenario)).await;
    assert!(report.writes > 3, "{report}");
}

/// A4, C13: a creation, including a COMMIT whose answer is lost.
#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash(CrashScenario::Create).await;
}

/// A4, A9: a change.
#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash(CrashScenario::Update).await;
}

/// A4: a new password.
#[tokio::test]
async fn a_new_password_stopped_at_any_statement_is_set() {
    crash(CrashScenario::Password).await;
}

/// A4: a deletion.
#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash(CrashScenario::Delete).await;
}

/// A4: the creation of a database, which cannot run in a transaction.
#[tokio::test]
async fn a_database_stopped_at_any_statement_is_ours() {
    crash(CrashScenario::Database).await;
}

/// A4: the deletion of that database.
#[tokio::test]
async fn a_database_stopped_at_any_statement_goes() {
    crash(CrashScenario::DeleteDatabase).await;
}
