//! One SQL statement, into which text from outside can only be inserted quoted.
//!
//! Program text is `&'static str`: a `String` created at run time cannot be used there, it must be added as a name, a
//! value or a secret. `Display` and `Debug` print a statement without its secrets; only [`Statement::expose_sql`]
//! returns the text for the server.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::quote;
use crate::sqlstate::Doing;

/// The replacement of a secret in everything that people read.
pub(crate) const REDACTED: &str = "'[redacted]'";

/// A statement on its way to the server.
#[derive(Clone)]
pub struct Statement {
    sql: String,
    /// The text without secrets; only set if there are any.
    shown: Option<String>,
    secrets: Vec<SecretString>,
    doing: Doing,
}

impl Statement {
    /// Starts a statement with program text.
    pub fn new(text: &'static str) -> Self {
        Self {
            sql: text.to_owned(),
            shown: None,
            secrets: Vec::new(),
            doing: Doing::of_sql(text),
        }
    }

    /// A query that is built from the texts of others, which are already quoted and contain no secrets.
    pub(crate) fn of_parts(sql: String) -> Self {
        Self {
            doing: Doing::of_sql(&sql),
            sql,
            shown: None,
            secrets: Vec::new(),
        }
    }

    /// Sets a parameter until the end of the transaction, as SET LOCAL does, but of any name and to any text.
    pub fn local_setting(name: &'static str, value: &str) -> Self {
        Self::new("SELECT pg_catalog.set_config(")
            .literal(name)
            .sql(", ")
            .literal(value)
            .sql(", true)")
    }

    /// Appends program text.
    #[must_use]
    pub fn sql(mut self, text: &'static str) -> Self {
        self.push(text);
        self
    }

    /// Appends a quoted name.
    #[must_use]
    pub fn ident(mut self, name: &str) -> Self {
        self.push(&quote::identifier(name));
        self
    }

    /// Appends a quoted name with its parent names.
    #[must_use]
    pub fn qualified<S: AsRef<str>>(mut self, path: &[S]) -> Self {
        self.push(&quote::qualified(path));
        self
    }

    /// Appends a value as a string literal.
    #[must_use]
    pub fn literal(mut self, value: &str) -> Self {
        self.push(&quote::literal(value));
        self
    }

    /// Appends an integer.
    #[must_use]
    pub fn number(mut self, value: i64) -> Self {
        self.push(&value.to_string());
        self
    }

    /// Appends a secret as a string literal. It is sent, but never printed.
    #[must_use]
    pub fn secret(mut self, value: &SecretString) -> Self {
        let shown = self.shown.get_or_insert_with(|| self.sql.clone());
        shown.push_str(REDACTED);
        self.sql.push_str(&quote::literal(value.expose_secret()));
        self.secrets.push(value.clone());
        self
    }

    /// Appends each item with `item`, and `separator` between them.
    #[must_use]
    pub fn list<T>(
        mut self,
        separator: &'static str,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(Self, T) -> Self,
    ) -> Self {
        for (index, value) in items.into_iter().enumerate() {
            if index > 0 {
                self.push(separator);
            }
            self = item(self, value);
        }
        self
    }

    /// Appends `more` only if `condition` holds.
    #[must_use]
    pub fn when(self, condition: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if condition { more(self) } else { self }
    }

    /// Sets the action, if the first word does not determine it: an unknown parameter in `ALTER ROLE … SET` is a
    /// mistake of the author, an unknown role may still be created.
    #[must_use]
    pub fn doing(mut self, doing: Doing) -> Self {
        self.doing = doing;
        self
    }

    /// The action of the statement.
    pub fn what(&self) -> Doing {
        self.doing
    }

    /// Whether the text contains a secret.
    pub(crate) fn is_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The text for the server, including secrets. For sending, never for printing.
    pub(crate) fn expose_sql(&self) -> &str {
        &self.sql
    }

    /// The secrets in the text, to remove them from the server's answers.
    pub(crate) fn secrets(&self) -> &[SecretString] {
        &self.secrets
    }

    fn push(&mut self, text: &str) {
        self.sql.push_str(text);
        if let Some(shown) = &mut self.shown {
            shown.push_str(text);
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown.as_deref().unwrap_or(&self.sql))
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Statement({self})")
    }
}

/// Equal if the server would get the same text. For tests and plans; the comparison is not in constant time.
impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.sql == other.sql
    }
}

impl Eq for Statement {}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(name: &str, verifier: &str) -> Statement {
        Statement::new("CREATE ROLE ")
            .ident(name)
            .sql(" PASSWORD ")
            .secret(&verifier.into())
            .sql(" LOGIN")
    }

    #[test]
    fn secrets_are_sent_and_not_shown() {
        let statement = create("app", "SCRAM-SHA-256$4096:c2FsdA==$a:b");
        assert_eq!(
            statement.expose_sql(),
            r#"CREATE ROLE "app" PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b' LOGIN"#
        );
        assert_eq!(
            statement.to_string(),
            r#"CREATE ROLE "app" PASSWORD '[redacted]' LOGIN"#
        );
        assert!(!format!("{statement:?}").contains("SCRAM"));
        assert!(statement.is_secret());
    }

    #[test]
    fn lists_and_conditions() {
        let grant = Statement::new("GRANT ")
            .list(", ", ["SELECT", "INSERT"], Statement::sql)
            .sql(" ON ")
            .qualified(&["app", "t"])
            .sql(" TO ")
            .list(", ", ["a", "b\"c"], Statement::ident)
            .when(true, |s| s.sql(" WITH GRANT OPTION"))
            .when(false, |s| s.sql(" never"));
        assert_eq!(
            grant.to_string(),
            r#"GRANT SELECT, INSERT ON "app"."t" TO "a", "b""c" WITH GRANT OPTION"#
        );
        assert!(!grant.is_secret());
        assert_eq!(grant.what(), Doing::Granting);
    }

    #[test]
    fn a_secret_is_blanked_wherever_it_stands() {
        let first = Statement::new("")
            .secret(&"s1-long-enough".into())
            .sql(" x ")
            .secret(&"s2-long-enough".into());
        assert_eq!(first.to_string(), "'[redacted]' x '[redacted]'");
    }
}
