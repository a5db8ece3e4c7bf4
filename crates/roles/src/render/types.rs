//! Renders argument types.
//!
//! A type's text comes from the catalog or from a manifest, so it is not trusted: the well-known spellings come from a
//! table, and everything else is split into names, which are quoted.

use stanchion_postgres::Statement;

/// Spellings that are keywords, or would look odd in quotes.
const KNOWN: [&str; 37] = [
    "bigint",
    "bit",
    "bit varying",
    "boolean",
    "bytea",
    "character",
    "character varying",
    "cidr",
    "date",
    "double precision",
    "inet",
    "integer",
    "internal",
    "interval",
    "json",
    "jsonb",
    "name",
    "numeric",
    "oid",
    "point",
    "real",
    "record",
    "regclass",
    "smallint",
    "text",
    "tid",
    "time with time zone",
    "time without time zone",
    "timestamp with time zone",
    "timestamp without time zone",
    "trigger",
    "tsquery",
    "tsvector",
    "uuid",
    "void",
    "xid",
    "xml",
];

/// Appends a type.
pub(super) fn append(statement: Statement, text: &str) -> Statement {
    let (base, array) = text.strip_suffix("[]").map_or((text, false), |base| (base, true));
    let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(base.trim()));
    let statement = match known {
        Some(known) => statement.sql(known),
        None => statement.qualified(&path(base.trim())),
    };
    statement.when(array, |statement| statement.sql("[]"))
}

/// `public."Odd type"` → `public`, `Odd type`.
fn path(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => push(&mut parts, '"'),
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c if quoted => push(&mut parts, c),
            c => push(&mut parts, c.to_ascii_lowercase()),
        }
    }
    parts
}

fn push(parts: &mut [String], c: char) {
    if let Some(last) = parts.last_mut() {
        last.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_or_quoted() {
        let render = |text| append(Statement::new(""), text).to_string();
        assert_eq!(render("integer"), "integer");
        assert_eq!(render("timestamp with time zone[]"), "timestamp with time zone[]");
        assert_eq!(render("public.color"), r#""public"."color""#);
        assert_eq!(render("public.\"Odd.\"\"type\"[]"), r#""public"."Odd.""type"[]"#);
        assert_eq!(render("int4) TO x; --"), r#""int4) to x; --""#);
    }
}
