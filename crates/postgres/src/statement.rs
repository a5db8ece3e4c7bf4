//! One SQL statement, built so that text from outside can only enter it quoted.
//!
//! Program text is `&'static str`: a `String` made at run time does not fit there, it must say whether it is a
//! name, a value or a secret. A statement shows itself (`Display`, `Debug`) with its secrets blanked out; the text
//! that goes to the server is reached only through [`Statement::expose_sql`].

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::quote;
use crate::sqlstate::Doing;

/// What stands in the place of a secret in everything that people read.
pub const REDACTED: &str = "'[redacted]'";

/// A statement on its way to the server.
#[derive(Clone)]
pub struct Statement {
    sql: String,
    /// The same text without secrets; kept only if there are any.
    shown: Option<String>,
    secrets: Vec<SecretString>,
    doing: Doing,
}

impl Statement {
    /// Starts a statement with text of the program.
    pub fn new(text: &'static str) -> Self {
        Self {
            sql: text.to_owned(),
            shown: None,
            secrets: Vec::new(),
            doing: Doing::of_sql(text),
        }
    }

    /// A query that was put together from the texts of others, which are quoted already and hold no secrets.
    pub(crate) fn of_parts(sql: String) -> Self {
        Self {
            doing: Doing::of_sql(&sql),
            sql,
            shown: None,
            secrets: Vec::new(),
        }
    }

    /// Appends text of the program.
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

    /// Appends a quoted name with the names that it is in.
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

    /// Appends a whole number.
    #[must_use]
    pub fn number(mut self, value: i64) -> Self {
        self.push(&value.to_string());
        self
    }

    /// Appends a secret as a string literal. It is sent, and shown nowhere.
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

    /// Says what the statement does, where its first word does not tell: an unknown parameter of
    /// `ALTER ROLE … SET` is a mistake of the writer, an unknown role may still come.
    #[must_use]
    pub fn doing(mut self, doing: Doing) -> Self {
        self.doing = doing;
        self
    }

    /// What the statement does.
    pub fn what(&self) -> Doing {
        self.doing
    }

    /// Does the text contain a secret?
    pub fn is_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The text for the server, secrets included. For sending, never for showing.
    pub fn expose_sql(&self) -> &str {
        &self.sql
    }

    /// The secrets in the text, for taking them out of what the server answers.
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

/// Equal if the server would get the same text. For tests and plans; not a comparison in constant time.
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
