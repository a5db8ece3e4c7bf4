//! Templates for keys of the credentials Secret, in a subset of Go's template syntax.
//!
//! ```text
//! template = { text | "{{" [ "-" ] [ function ] value { "|" function } [ "-" ] "}}" }
//! value    = "." field | '"' literal '"'
//! ```
//!
//! `{{-` and `-}}` remove the white space beside them; `{{ "{{" }}` writes two braces. A template is parsed when the
//! object is validated, so that an error is reported at once, with its position and without values.

mod reader;
#[cfg(test)]
mod tests;

use reader::Reader;

use super::escape;

/// The size limit of a Secret. Functions can be chained, so a short template could use any amount of memory.
pub(super) const MOST: usize = 1024 * 1024;

const TOO_LARGE: &str = "the value is too large for a Secret";
const UNKNOWN: &str = "the role has no password, or only a hash of it is known";

/// The fields of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Username,
    Password,
    Host,
    Port,
    Database,
    SslMode,
    Params,
}

const FIELDS: &[(&str, Field)] = &[
    ("Username", Field::Username),
    ("Password", Field::Password),
    ("Host", Field::Host),
    ("Port", Field::Port),
    ("Database", Field::Database),
    ("SSLMode", Field::SslMode),
    ("Params", Field::Params),
];

type Function = fn(&str) -> String;

const FUNCTIONS: &[(&str, Function)] = &[
    ("urlquery", escape::percent),
    ("b64enc", base64),
    ("quote", escape::json),
    ("squote", escape::shell),
    ("conninfo", escape::conninfo),
    ("dotnet", escape::dotnet),
    ("pgpass", escape::pgpass),
    ("trim", |text| text.trim().to_owned()),
    ("lower", |text| text.to_lowercase()),
    ("upper", |text| text.to_uppercase()),
];

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// An error in a template, and its position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub(super) struct Mistake {
    line: usize,
    column: usize,
    message: String,
}

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template<'a> {
    text: &'a str,
    parts: Vec<Part<'a>>,
}

#[derive(Debug)]
enum Part<'a> {
    Text(&'a str),
    Value {
        offset: usize,
        value: Value,
        functions: Vec<Function>,
    },
}

#[derive(Debug)]
enum Value {
    Field(Field),
    Literal(String),
}

impl<'a> Template<'a> {
    /// Parses a template.
    pub(super) fn parse(text: &'a str) -> Result<Self, Mistake> {
        let mut reader = Reader { text, offset: 0 };
        let mut parts = Vec::new();
        let mut trim = false;
        loop {
            let rest = reader.rest();
            let (plain, more) = rest
                .split_once("{{")
                .map_or((rest, false), |(plain, _)| (plain, true));
            reader.offset += plain.len();
            let plain = if trim { plain.trim_start() } else { plain };
            if !more {
                parts.push(Part::Text(plain));
                return Ok(Self { text, parts });
            }
            let offset = reader.offset;
            reader.skip("{{");
            parts.push(Part::Text(if reader.skip("-") {
                plain.trim_end()
            } else {
                plain
            }));
            let (value, functions, trim_after) = reader.action(offset)?;
            parts.push(Part::Value {
                offset,
                value,
                functions,
            });
            trim = trim_after;
        }
    }

    /// The text with the values inserted. `values` returns `None` for a field that this role lacks.
    pub(super) fn render(&self, values: impl Fn(Field) -> Option<String>) -> Result<String, Mistake> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value {
                    offset,
                    value,
                    functions,
                } => {
                    let wrong = |message| mistake(self.text, *offset, message);
                    let value = value.get(&values).ok_or_else(|| wrong(UNKNOWN))?;
                    let value = functions.iter().try_fold(value, |value, function| {
                        Some(function(&value)).filter(|value| value.len() <= MOST)
                    });
                    out.push_str(&value.ok_or_else(|| wrong(TOO_LARGE))?);
                    if out.len() > MOST {
                        return Err(wrong(TOO_LARGE));
                    }
                }
            }
        }
        Ok(out)
    }
}

impl Value {
    fn get(&self, values: impl Fn(Field) -> Option<String>) -> Option<String> {
        match self {
            Self::Field(field) => values(*field),
            Self::Literal(text) => Some(text.clone()),
        }
    }
}

fn mistake(text: &str, offset: usize, message: &str) -> Mistake {
    let before = text.get(..offset).unwrap_or(text);
    Mistake {
        line: before.matches('\n').count() + 1,
        column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
        message: message.to_owned(),
    }
}
