//! The state of the server, and the operator's statements.

use super::{TestEnv, role_name};

impl TestEnv {
    /// The role's privileges on a database, in alphabetical order.
    pub(crate) async fn words(&self, role: &str, database: &str) -> String {
        let sql = format!(
            "SELECT coalesce(string_agg(a.privilege_type, ',' ORDER BY a.privilege_type), '') FROM pg_database d, aclexplode(d.datacl) a \
             JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = '{role}' AND d.datname = '{database}'"
        );
        self.server_one(&sql).await
    }

    /// A value from the database that every server has.
    pub(crate) async fn server_one(&self, sql: &str) -> String {
        let value = self.database.server().scalar("postgres", sql).await;
        value.unwrap_or_default()
    }

    /// The statements of the operator's sessions so far, in all databases.
    pub(crate) fn statements(&self) -> Vec<String> {
        self.database.server().log().statements_of(&self.application)
    }

    /// Those of [`Self::statements`] that write.
    pub(crate) fn sql_writes(&self) -> Vec<String> {
        let reading = ["SELECT", "BEGIN", "SET", "COMMIT", "ROLLBACK"];
        let log = self.database.server().log();
        log.statements_other_than(&reading, &self.application)
    }

    /// The value that a query returns.
    pub(crate) async fn one(&self, sql: &str) -> String {
        self.database.scalar(sql).await.unwrap_or_default()
    }

    /// Whether the role exists.
    pub(crate) async fn has_role(&self, role: &str) -> bool {
        let sql = format!("SELECT count(*) FROM pg_roles WHERE rolname = '{role}'");
        self.server_one(&sql).await == "1"
    }

    pub(crate) async fn logs_in(&self, role: &str, password: &str) -> bool {
        self.database.connect(role, password).await.is_ok()
    }

    /// A role that others can be members of.
    pub(crate) async fn group(&self, attributes: &str) -> String {
        let name = role_name();
        self.database
            .execute(&format!("CREATE ROLE {name} {attributes}"))
            .await;
        name
    }

    /// Whether the role can run this statement.
    pub(crate) async fn can(&self, role: &str, password: &str, sql: &str) -> bool {
        let client = self.database.connect(role, password).await.unwrap();
        client.batch_execute(sql).await.is_ok()
    }

    /// One column of the role in `pg_roles`.
    pub(crate) async fn attribute(&self, role: &str, column: &str) -> String {
        self.one(&format!("SELECT {column} FROM pg_roles WHERE rolname = '{role}'"))
            .await
    }

    /// Waits until a query returns this.
    pub(crate) async fn becomes(&self, sql: &str, value: &str) {
        let what = format!("{value} from {sql}");
        let becoming = self.wait().eventually(&what, async || {
            let found = self.one(sql).await;
            if found == value { Ok(()) } else { Err(found) }
        });
        becoming.await;
    }
}
