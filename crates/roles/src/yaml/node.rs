//! The tree of a parsed document.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::Error;

/// A location in a document, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl From<serde_saphyr::Location> for Location {
    fn from(location: serde_saphyr::Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}

/// A value and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Location of its beginning.
    pub location: Location,
}

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    Sequence(Vec<Node>),
    /// In the order of the document. Keys that are not strings are kept as text.
    Mapping(Vec<(String, Location, Node)>),
}

impl Node {
    /// The value under a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Mapping(entries) => entries
                .iter()
                .find(|(name, ..)| name == key)
                .map(|(.., node)| node),
            _ => None,
        }
    }

    /// The location of the nearest existing node on a path such as `grants[3].object.name`: something that is missing
    /// is reported at its parent.
    pub(crate) fn locate(&self, path: &[Segment]) -> Location {
        let mut node = self;
        for segment in path {
            let next = match (segment, &node.value) {
                (Segment::Key(key), _) => node.get(key),
                (Segment::Index(index), Value::Sequence(items)) => items.get(*index),
                (Segment::Index(_), _) => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.location
    }

    /// The name of the value's kind in errors.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

/// One step of a path into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// A key of a mapping.
    Key(String),
    /// An item of a list.
    Index(usize),
}

/// Reads one document. An empty one is an empty mapping.
pub fn parse(text: &str) -> Result<Node, Error> {
    let options = serde_saphyr::options! {
        // A manifest of some thousand schemas is ordinary input, and comes from a file that the user chose.
        budget: serde_saphyr::budget! { max_nodes: 50_000_000, max_events: 100_000_000 },
        with_snippet: false,
        // `on:` is a key of the format, not a boolean.
        strict_booleans: true,
    };
    let node: Option<Node> = serde_saphyr::from_str_with_options(text, options).map_err(|error| Error {
        message: brief(&error),
        location: error.location().map(Location::from),
    })?;
    Ok(match node {
        Some(node) if node.value != Value::Null => node,
        _ => Node {
            value: Value::Mapping(vec![]),
            location: Location { line: 1, column: 1 },
        },
    })
}

/// The parser's message without the location, which the caller adds.
fn brief(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value: Bare(value),
            referenced,
            ..
        } = Spanned::<Bare>::deserialize(deserializer)?;
        Ok(Self {
            value,
            location: referenced.into(),
        })
    }
}

struct Bare(Value);

impl<'de> Deserialize<'de> for Bare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BareVisitor).map(Bare)
    }
}

struct BareVisitor;

impl<'de> Visitor<'de> for BareVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value)
            .map(Value::Integer)
            .map_err(|_| E::custom(format!("{value} is too large")))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut nodes = vec![];
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Value::Sequence(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut mapping = vec![];
        while let Some(key) = entries.next_key::<Spanned<Bare>>()? {
            let name = match key.value.0 {
                Value::String(name) => name,
                Value::Bool(value) => value.to_string(),
                Value::Integer(value) => value.to_string(),
                _ => return Err(de::Error::custom("a key must be a plain string")),
            };
            mapping.push((name, key.referenced.into(), entries.next_value()?));
        }
        Ok(Value::Mapping(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_remembers_where_it_stood() {
        let node = parse("roles:\n  - name: app\n    login: true\n").unwrap();
        let path = [
            Segment::Key("roles".into()),
            Segment::Index(0),
            Segment::Key("login".into()),
        ];
        assert_eq!(node.locate(&path), Location { line: 3, column: 12 });
        let missing = [Segment::Key("roles".into()), Segment::Index(7)];
        assert_eq!(node.locate(&missing), node.get("roles").unwrap().location);
    }

    #[test]
    fn an_empty_document_is_an_empty_mapping() {
        for text in ["", "# nothing\n", "---\n"] {
            assert_eq!(parse(text).unwrap().value, Value::Mapping(vec![]), "{text:?}");
        }
    }

    #[test]
    fn a_syntax_error_has_a_place() {
        let error = parse("roles:\n  - name: [a\n").unwrap_err();
        assert!(error.location.is_some(), "{error:?}");
        assert!(!error.message.contains("line"), "{error}");
    }

    #[test]
    fn a_key_cannot_stand_twice_and_a_file_is_one_document() {
        assert!(parse("a: 1\na: 2\n").is_err());
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
    }

    #[test]
    fn anchors_are_followed() {
        let node = parse("a: &x {p: 1}\nb: *x\n").unwrap();
        assert_eq!(node.get("b").unwrap().get("p").unwrap().value, Value::Integer(1));
    }
}
