//! Names of routines: `name(argument types)`.
//!
//! People write a signature with or without argument names, with `int4` or `integer`, with or without the schema of a
//! type. All of these mean the same routine, so signatures are compared by meaning: a comparison of the text would
//! grant and revoke the same function on every run.

use std::borrow::Cow;

/// A routine as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The name without schema, unquoted.
    pub name: String,
    /// The arguments; `None` if the manifest gives only the name.
    pub arguments: Option<Vec<String>>,
}

/// Short spellings that PostgreSQL prints in full.
const ALIASES: [(&str, &str); 15] = [
    ("bool", "boolean"),
    ("char", "character"),
    ("decimal", "numeric"),
    ("float", "double precision"),
    ("float4", "real"),
    ("float8", "double precision"),
    ("int", "integer"),
    ("int2", "smallint"),
    ("int4", "integer"),
    ("int8", "bigint"),
    ("time", "time without time zone"),
    ("timestamp", "timestamp without time zone"),
    ("timestamptz", "timestamp with time zone"),
    ("timetz", "time with time zone"),
    ("varchar", "character varying"),
];

const MODES: [&str; 4] = ["in ", "inout ", "out ", "variadic "];

impl Signature {
    /// Parses `name(args)` or `name`. Refuses text that cannot be a list of types, because the list becomes part of
    /// SQL.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self {
                name: text.to_owned(),
                arguments: None,
            });
        };
        let list = rest.strip_suffix(')').ok_or_else(|| {
            format!("`{text}` has an opening parenthesis and does not end with a closing one")
        })?;
        let arguments = split(list)
            .map_err(|found| format!("`{found}` cannot be part of an argument type in `{text}`"))?;
        Ok(Self {
            name: name.trim().to_owned(),
            arguments: Some(arguments),
        })
    }

    /// Whether this matches the routine of that name with these input argument types, as PostgreSQL prints them.
    pub(crate) fn means(&self, name: &str, types: &[impl AsRef<str>]) -> bool {
        if self.name != name {
            return false;
        }
        let Some(arguments) = &self.arguments else {
            return true;
        };
        let inputs: Vec<_> = arguments
            .iter()
            .filter(|argument| !plain(argument).starts_with("out "))
            .collect();
        inputs.len() == types.len()
            && inputs
                .iter()
                .zip(types)
                .all(|(argument, actual)| is_type(argument, actual.as_ref()))
    }
}

/// Splits at commas outside of quotes; the error is the invalid character.
fn split(list: &str) -> Result<Vec<String>, char> {
    let mut arguments = vec![];
    let mut current = String::new();
    let mut quoted = false;
    for c in list.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                arguments.push(std::mem::take(&mut current).trim().to_owned());
                continue;
            }
            c if quoted || c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '[' | ']' | ' ') => {}
            other => return Err(other),
        }
        current.push(c);
    }
    if quoted {
        return Err('"');
    }
    if !current.trim().is_empty() {
        arguments.push(current.trim().to_owned());
    }
    if arguments.iter().any(String::is_empty) {
        Err(',')
    } else {
        Ok(arguments)
    }
}

/// Lower case outside of quotes, single spaces.
fn plain(argument: &str) -> String {
    let mut quoted = false;
    let folded: String = argument
        .chars()
        .map(|c| {
            quoted ^= c == '"';
            if quoted { c } else { c.to_ascii_lowercase() }
        })
        .collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An argument is a type, or a name and a type, or a mode and either.
fn is_type(argument: &str, actual: &str) -> bool {
    let mut text = plain(argument);
    if let Some(rest) = MODES.iter().find_map(|mode| text.strip_prefix(mode)) {
        text = rest.to_owned();
    }
    let actual = plain(actual);
    let without_name = text.split_once(' ').map(|(_, rest)| rest);
    same_type(&text, &actual) || without_name.is_some_and(|rest| same_type(rest, &actual))
}

fn same_type(written: &str, actual: &str) -> bool {
    let (base, dimensions) = written.find('[').map_or((written, ""), |at| written.split_at(at));
    let base = base.trim().strip_prefix("pg_catalog.").unwrap_or(base.trim());
    let full: Cow<'_, str> = ALIASES
        .iter()
        .find(|(short, _)| *short == base)
        .map_or(base.into(), |(_, full)| (*full).into());
    let written = format!("{full}{}", if dimensions.is_empty() { "" } else { "[]" });
    actual == written
        || actual
            .strip_suffix(&written)
            .is_some_and(|schema| schema.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(text: &str, types: &[&str]) -> bool {
        Signature::parse(text).unwrap().means("f", types)
    }

    #[test]
    fn names_aliases_modes_and_schemas_do_not_matter() {
        for text in [
            "f(integer, text)",
            "f(int4,text)",
            "f(a integer, b text)",
            "f(IN a INT, INOUT b text)",
            "f(a integer, b text, OUT c bigint)",
            "f",
        ] {
            assert!(means(text, &["integer", "text"]), "{text}");
        }
        assert!(means("f()", &[]));
        assert!(means("f(VARIADIC list text[])", &["text[]"]));
        assert!(means("f(color)", &["public.color"]));
        assert!(means(
            "f(timestamptz, timestamp with time zone)",
            &["timestamp with time zone"; 2]
        ));
        assert!(means("f(\"Odd, type\")", &["public.\"Odd, type\""]));
    }

    #[test]
    fn other_routines_are_other_routines() {
        assert!(!means("f(integer)", &["integer", "text"]));
        assert!(!means("f(text, integer)", &["integer", "text"]));
        assert!(!means("f(color)", &["public.discolor"]));
        assert!(!Signature::parse("g()").unwrap().means("f", &[] as &[&str]));
    }

    #[test]
    fn what_is_no_type_is_refused() {
        for text in [
            "f(integer) TO x; --)",
            "f(integer",
            "f(')",
            "f(\"open)",
            "f(integer,,text)",
        ] {
            assert!(Signature::parse(text).is_err(), "{text}");
        }
    }
}
