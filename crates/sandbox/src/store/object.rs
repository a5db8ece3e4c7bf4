//! A stored object: its value, its revision, and its JSON, which is written once for all readers.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// One state of one object. It never changes.
#[derive(Debug)]
pub(crate) struct Object {
    value: Value,
    revision: u64,
    json: OnceLock<(Bytes, usize)>,
}

impl Object {
    pub(crate) fn new(mut value: Value, revision: u64) -> Self {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        Self {
            value,
            revision,
            json: OnceLock::new(),
        }
    }

    /// An object that is shown and not stored, as after a dry run.
    pub(crate) fn unsaved(value: Value) -> Self {
        Self {
            value,
            revision: 0,
            json: OnceLock::new(),
        }
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    fn written(&self) -> &(Bytes, usize) {
        self.json.get_or_init(|| {
            let mut head = Map::new();
            let mut body = Map::new();
            for (key, value) in self.value.as_object().into_iter().flatten() {
                let part = if key == "kind" || key == "apiVersion" {
                    &mut head
                } else {
                    &mut body
                };
                part.insert(key.clone(), value.clone());
            }
            let (head, body) = (Value::Object(head).to_string(), Value::Object(body).to_string());
            let joined = match (head.strip_suffix('}'), body.strip_prefix('{')) {
                (Some(head), Some(body)) if head.len() > 1 && body.len() > 1 => format!("{head},{body}"),
                _ => self.value.to_string(),
            };
            let tail = joined.len() + 1 - body.len();
            (joined.into(), tail)
        })
    }

    /// The whole object.
    pub(crate) fn json(&self) -> Bytes {
        self.written().0.clone()
    }

    /// The object without its opening brace, kind and apiVersion: an item of a typed list.
    pub(crate) fn json_tail(&self) -> &[u8] {
        let (bytes, tail) = self.written();
        bytes.get(*tail..).unwrap_or_default()
    }

    pub(crate) fn text(&self, pointer: &str) -> &str {
        text(&self.value, pointer)
    }

    pub(crate) fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.value
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(Value::is_string)
    }

    pub(crate) fn finalizers(&self) -> Vec<&str> {
        let list = self
            .value
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// The text at a pointer, empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_leaves_out_kind_and_version() {
        let object = Object::new(
            json!({"metadata": {"name": "a"}, "kind": "Pod", "apiVersion": "v1"}),
            3,
        );
        let whole: Value = serde_json::from_slice(&object.json()).unwrap();
        assert_eq!(&whole, object.value());
        let tail = format!("{{{}", std::str::from_utf8(object.json_tail()).unwrap());
        let tail: Value = serde_json::from_str(&tail).unwrap();
        assert_eq!(tail, json!({"metadata": {"name": "a", "resourceVersion": "3"}}));
    }
}
