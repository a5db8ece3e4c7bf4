//! The contents of the database, and the operator's statements.

use super::TestEnv;

impl TestEnv {
    /// The value that a query returns.
    pub(crate) async fn one(&self, sql: &str) -> String {
        self.database.scalar(sql).await.unwrap_or_default()
    }

    /// Whether the role exists.
    pub(crate) async fn has_role(&self, role: &str) -> bool {
        self.one(&format!("SELECT count(*) FROM pg_roles WHERE rolname = '{role}'"))
            .await
            == "1"
    }

    /// The statements of the operator's sessions so far.
    pub(crate) fn statements(&self) -> Vec<String> {
        self.database.server().log().statements_of(&self.application)
    }

    /// Those of [`Self::statements`] that write.
    pub(crate) fn sql_writes(&self) -> Vec<String> {
        let reading = ["SELECT", "WITH", "BEGIN", "SET", "COMMIT", "ROLLBACK"];
        let log = self.database.server().log();
        log.statements_other_than(&reading, &self.application)
    }

    pub(crate) async fn logs_in(&self, role: &str, password: &str) -> bool {
        self.database.connect(role, password).await.is_ok()
    }
}
