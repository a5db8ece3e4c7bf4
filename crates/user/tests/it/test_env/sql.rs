//! The state of the server, and the operator's statements.

use stanchion_testkit::wait;

use super::{TestEnv, WAIT_TIMEOUT, role_name};

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
        let log = self.database.server().log();
        let ours = log
            .entries()
            .iter()
            .filter(|entry| entry.application == self.application);
        ours.filter_map(|entry| entry.statement())
            .map(str::to_owned)
            .collect()
    }

    /// Those of [`Self::statements`] that write. Statements with a password are not logged.
    pub(crate) fn sql_writes(&self) -> Vec<String> {
        let reading = ["SELECT", "BEGIN", "SET", "COMMIT", "ROLLBACK"];
        let mut all = self.statements();
        all.retain(|sql| {
            let mut parts = sql.split(';').map(str::trim).filter(|part| !part.is_empty());
            !parts.all(|part| reading.iter().any(|word| part.starts_with(word)))
        });
        all
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
        wait::eventually(WAIT_TIMEOUT, &format!("{value} from {sql}"), async || {
            let found = self.one(sql).await;
            if found == value { Ok(()) } else { Err(found) }
        })
        .await;
    }
}
