//! Killed at every statement, and disconnected at every statement.

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
    assert!(report.writes > 1, "{report}");
}

#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash(CrashScenario::Create).await;
}

#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash(CrashScenario::Change).await;
}

#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash(CrashScenario::Delete).await;
}
