//! Quoting of names and values.
//!
//! Names are always quoted, even if it is not necessary: an unquoted `CamelCase` silently becomes `camelcase`, and an
//! unquoted `x SUPERUSER` is not a name but an instruction.

use postgres_protocol::escape::{escape_identifier, escape_literal};

/// A name, in double quotes.
pub fn identifier(name: &str) -> String {
    escape_identifier(name)
}

/// A value as a string literal, correct for every `standard_conforming_strings`. A literal with backslashes begins with
/// a space, which separates its `E` from a preceding word.
pub fn literal(value: &str) -> String {
    escape_literal(value)
}

/// A name with its parent names, each quoted: `"schema"."table"`.
pub fn qualified<S: AsRef<str>>(path: &[S]) -> String {
    path.iter()
        .map(|part| identifier(part.as_ref()))
        .collect::<Vec<_>>()
        .join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_case_and_their_quotes() {
        assert_eq!(identifier("CamelCase"), r#""CamelCase""#);
        assert_eq!(identifier(r#"x" SUPERUSER --"#), r#""x"" SUPERUSER --""#);
        assert_eq!(qualified(&["app", "Order.Items"]), r#""app"."Order.Items""#);
    }

    #[test]
    fn values_cannot_end_their_literal() {
        assert_eq!(literal("p' SUPERUSER '"), "'p'' SUPERUSER '''");
        assert_eq!(literal(r"a\'b"), r" E'a\\''b'");
    }
}
