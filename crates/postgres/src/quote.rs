//! Quoting of names and values.
//!
//! Names are always quoted, also those that need not be: an unquoted `CamelCase` silently becomes
//! `camelcase`, and an unquoted `x SUPERUSER` is no name at all but an instruction.

use postgres_protocol::escape::{escape_identifier, escape_literal};

/// The longest name PostgreSQL keeps, in bytes. It cuts longer ones off with no more than a notice, so that two
/// long names can become one.
pub const MAX_IDENTIFIER_BYTES: usize = 63;

/// A name, in double quotes.
pub fn identifier(name: &str) -> String {
    escape_identifier(name)
}

/// A value as a string literal; correct whatever `standard_conforming_strings` says. One with backslashes begins
/// with a space, which keeps its `E` away from a word before it.
pub fn literal(value: &str) -> String {
    escape_literal(value)
}

/// A name with the names that it is in, each quoted: `"schema"."table"`.
pub fn qualified<S: AsRef<str>>(path: &[S]) -> String {
    path.iter()
        .map(|part| identifier(part.as_ref()))
        .collect::<Vec<_>>()
        .join(".")
}

/// Can PostgreSQL hold this name as it is? Not if it is empty, too long or contains NUL.
pub fn is_valid_identifier(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_IDENTIFIER_BYTES && !name.contains('\0')
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

    #[test]
    fn names_are_measured_in_bytes() {
        assert!(is_valid_identifier(&"x".repeat(63)));
        assert!(!is_valid_identifier(&"x".repeat(64)));
        assert!(
            !is_valid_identifier(&"é".repeat(32)),
            "64 bytes, although 32 characters"
        );
        assert!(!is_valid_identifier(""));
        assert!(!is_valid_identifier("a\0b"));
    }
}
