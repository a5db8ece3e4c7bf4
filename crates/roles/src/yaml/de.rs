//! Deserializes a type from the tree.

use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::cell::RefCell;

use super::Error;
use super::node::{Location, Node, Value};

/// A key that the type does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key.
    pub key: String,
    /// Its location.
    pub location: Location,
    /// The keys that are known there.
    pub known: &'static [&'static str],
}

/// Deserializes a type, and reports unknown keys.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<(T, Vec<UnknownKey>), Error> {
    let unknown = RefCell::new(vec![]);
    let value = T::deserialize(Reader {
        node,
        unknown: &unknown,
    })?;
    Ok((value, unknown.into_inner()))
}

impl de::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            location: None,
        }
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node,
    unknown: &'a RefCell<Vec<UnknownKey>>,
}

impl<'a> Reader<'a> {
    fn at(self, node: &'a Node) -> Self {
        Self { node, ..self }
    }

    fn items(self, items: &'a [Node]) -> SeqDeserializer<impl Iterator<Item = Self>, Error> {
        SeqDeserializer::new(items.iter().map(move |node| self.at(node)))
    }

    /// Adds this location to an error that has none.
    fn place(self, mut error: Error) -> Error {
        error.location.get_or_insert(self.node.location);
        error
    }

    fn wrong<V>(self, expected: &dyn de::Expected) -> Result<V, Error> {
        Err(self.place(Error::invalid_type(Unexpected::Other(self.node.kind()), expected)))
    }
}

impl IntoDeserializer<'_, Error> for Reader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(value) => visitor.visit_str(value),
            Value::Sequence(items) => visitor.visit_seq(self.items(items)),
            Value::Mapping(entries) => visitor.visit_map(Entries {
                reader: self,
                rest: entries.iter(),
                known: None,
                value: None,
            }),
        }
        .map_err(|error| self.place(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Mapping(entries) = &self.node.value else {
            return self.wrong(&visitor);
        };
        let entries = Entries {
            reader: self,
            rest: entries.iter(),
            known: Some(fields),
            value: None,
        };
        visitor.visit_map(entries).map_err(|error| self.place(error))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            // The enums of a manifest are plain strings.
            Value::String(name) => visitor
                .visit_enum(StrDeserializer::new(name))
                .map_err(|error| self.place(error)),
            _ => self.wrong(&"a string"),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A key without a value is an empty list.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Null => visitor.visit_seq(self.items(&[])),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct tuple tuple_struct map identifier
    }
}

struct Entries<'a> {
    reader: Reader<'a>,
    rest: std::slice::Iter<'a, (String, Location, Node)>,
    /// The fields of the struct; `None` for a map, whose keys are free.
    known: Option<&'static [&'static str]>,
    value: Option<&'a Node>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        for (key, location, node) in self.rest.by_ref() {
            if let Some(known) = self.known.filter(|known| !known.contains(&key.as_str())) {
                let unknown = UnknownKey {
                    key: key.clone(),
                    location: *location,
                    known,
                };
                self.reader.unknown.borrow_mut().push(unknown);
                continue;
            }
            self.value = Some(node);
            let key = StrDeserializer::<Error>::new(key);
            return seed.deserialize(key).map(Some).map_err(|mut error| {
                error.location.get_or_insert(*location);
                error
            });
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self.value.take() {
            Some(node) => {
                let reader = self.reader.at(node);
                seed.deserialize(reader).map_err(|error| reader.place(error))
            }
            None => Err(Error::custom("a value was asked for before its key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Outer {
        inner: Vec<Inner>,
        #[serde(default)]
        flag: Option<bool>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        name: String,
    }

    #[test]
    fn all_unknown_keys_are_reported_with_their_places() {
        let node = parse("inner:\n  - name: a\n    nam: b\nflagg: true\n").unwrap();
        let (outer, unknown): (Outer, _) = from_node(&node).unwrap();
        assert_eq!(outer.inner.len(), 1);
        let keys: Vec<_> = unknown
            .iter()
            .map(|u| (u.key.as_str(), u.location.line))
            .collect();
        assert_eq!(keys, [("nam", 3), ("flagg", 4)]);
        assert_eq!(unknown[1].known, ["inner", "flag"]);
    }

    #[test]
    fn a_wrong_type_is_reported_where_it_stands() {
        let node = parse("inner:\n  - name: a\n  - name: [1]\n").unwrap();
        let error = from_node::<Outer>(&node).unwrap_err();
        assert_eq!(error.location, Some(Location { line: 3, column: 11 }));
        assert!(error.message.contains("expected a string"), "{error}");
    }

    #[test]
    fn a_missing_field_is_reported_at_its_mapping() {
        let node = parse("inner:\n  - name: a\n  - {}\n").unwrap();
        let error = from_node::<Outer>(&node).unwrap_err();
        assert_eq!(error.location.map(|l| l.line), Some(3));
        assert_eq!(error.message, "missing field `name`");
    }
}
