//! A4: killed at every write to the API and at every statement, and disconnected at every statement, the operator
//! reaches the same end state.

mod scenario;

use stanchion_testenv::crash::{crash_at_every_statement, crash_at_every_write};

use scenario::UserScenario;

/// A4, C3: between any two writes of a creation.
#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash_at_every_write(UserScenario::Create).await;
    assert_eq!(
        report.writes, 3,
        "the finalizer, the status before the changes, the status after them: {report}"
    );
}

/// A4: a password that is in no Secret is lost with the process.
#[tokio::test]
async fn a_generated_password_survives_any_crash() {
    let report = crash_at_every_write(UserScenario::Generate).await;
    assert_eq!(report.writes, 4, "and the Secret: {report}");
}

/// A4, A9: between any two writes of a change.
#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    crash_at_every_write(UserScenario::Update).await;
}

/// A4: between any two writes of a rotation.
#[tokio::test]
async fn a_new_password_killed_at_any_write_is_set() {
    crash_at_every_write(UserScenario::Password).await;
}

/// A4: a database that was created is recognised as ours, independent of the status.
#[tokio::test]
async fn a_database_made_at_any_write_is_ours() {
    crash_at_every_write(UserScenario::Database).await;
}

/// A4: and it is dropped with its object.
#[tokio::test]
async fn a_database_goes_at_any_write() {
    crash_at_every_write(UserScenario::DeleteDatabase).await;
}

/// A4: between any two writes of a deletion.
#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash_at_every_write(UserScenario::Delete).await;
}

async fn crash_in_sql(scenario: UserScenario) {
    let report = crash_at_every_statement(scenario).await;
    assert!(report.writes > 3, "{report}");
}

/// A4, C13: a creation, including a COMMIT whose answer is lost.
#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    crash_in_sql(UserScenario::Create).await;
}

/// A4, A9: a change.
#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    crash_in_sql(UserScenario::Update).await;
}

/// A4: a new password.
#[tokio::test]
async fn a_new_password_stopped_at_any_statement_is_set() {
    crash_in_sql(UserScenario::Password).await;
}

/// A4: a deletion.
#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    crash_in_sql(UserScenario::Delete).await;
}

/// A4: the creation of a database, which cannot run in a transaction.
#[tokio::test]
async fn a_database_stopped_at_any_statement_is_ours() {
    crash_in_sql(UserScenario::Database).await;
}

/// A4: the deletion of that database.
#[tokio::test]
async fn a_database_stopped_at_any_statement_goes() {
    crash_in_sql(UserScenario::DeleteDatabase).await;
}
