//! Reads JSON as Go does: a duplicate key is merged if both values are objects, replaced otherwise, and reported.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value, and the paths of duplicate fields.
pub(crate) fn with_duplicates(text: &[u8]) -> serde_json::Result<(Value, Vec<String>)> {
    let found = RefCell::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let root = Place {
        above: None,
        key: "",
        found: &found,
    };
    let value = root.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, found.into_inner()))
}

/// The position of the reader. The path is only built when there is something to report.
#[derive(Clone, Copy)]
struct Place<'a> {
    above: Option<&'a Place<'a>>,
    key: &'a str,
    found: &'a RefCell<Vec<String>>,
}

impl Place<'_> {
    fn path(&self) -> String {
        match self.above.map(Place::path).filter(|above| !above.is_empty()) {
            Some(above) => format!("{above}.{}", self.key),
            None => self.key.to_owned(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Place {
            above: Some(&self),
            key: &format!("[{}]", list.len()),
            found: self.found,
        })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let place = Place {
                above: Some(&self),
                key: &key,
                found: self.found,
            };
            let value = entries.next_value_seed(place)?;
            match (map.get_mut(&key), value) {
                (None, value) => drop(map.insert(key, value)),
                (Some(known), value) => {
                    self.found.borrow_mut().push(place.path());
                    merge(known, value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

fn merge(known: &mut Value, value: Value) {
    match (known, value) {
        (Value::Object(known), Value::Object(more)) => {
            for (key, value) in more {
                match known.get_mut(&key) {
                    Some(known) => merge(known, value),
                    None => drop(known.insert(key, value)),
                }
            }
        }
        (known, value) => *known = value,
    }
}

#[cfg(test)]
mod tests {
    use super::with_duplicates;
    use serde_json::json;

    #[test]
    fn keys_that_come_twice_are_merged_and_told() {
        let text = br#"{"a": {"k": 1, "k": 2}, "n": [1.5, -1, true, null], "a": {"l": "m"}}"#;
        let (value, twice) = with_duplicates(text).unwrap();
        assert_eq!(
            value,
            json!({"a": {"k": 2, "l": "m"}, "n": [1.5, -1, true, null]})
        );
        assert_eq!(twice, ["a.k", "a"]);
        assert!(with_duplicates(b"{} {}").is_err());
    }
}
