//! A stored object: its value, its revision, and its JSON in both formats of watches, which is serialized once for all
//! readers.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Value, json};

/// One immutable state of an object.
#[derive(Debug)]
pub(crate) struct Object {
    value: Value,
    revision: u64,
    written: OnceLock<Written>,
    metadata: OnceLock<Bytes>,
}

/// An object's JSON in the format of watches: a hundred watchers share one text.
#[derive(Debug)]
struct Written {
    /// A complete event about a change.
    event: Bytes,
    /// The offset in the event after the kind and the version of the object.
    tail: usize,
}

const BEFORE: &[u8] = b"{\"type\":\"MODIFIED\",\"object\":";
const AFTER: &[u8] = b"}\n";

impl Written {
    fn new(value: &Value) -> Self {
        let is_head = |key: &str| key == "kind" || key == "apiVersion";
        let fields = || value.as_object().into_iter().flatten();
        let mut event = BEFORE.to_vec();
        let mut separator = b'{';
        let mut write = |event: &mut Vec<u8>, key: &str, value: &Value| {
            event.push(separator);
            separator = b',';
            // Writing to memory cannot fail.
            let _ = serde_json::to_writer(&mut *event, key);
            event.push(b':');
            let _ = serde_json::to_writer(&mut *event, value);
        };
        for (key, value) in fields().filter(|(key, _)| is_head(key)) {
            write(&mut event, key, value);
        }
        let tail = event.len() + 1;
        for (key, value) in fields().filter(|(key, _)| !is_head(key)) {
            write(&mut event, key, value);
        }
        if event.len() == BEFORE.len() {
            event.push(b'{');
        }
        event.push(b'}');
        event.extend_from_slice(AFTER);
        event.shrink_to_fit();
        Self {
            event: event.into(),
            tail,
        }
    }
}

impl Object {
    pub(crate) fn new(mut value: Value, revision: u64) -> Self {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        Self {
            value,
            revision,
            written: OnceLock::new(),
            metadata: OnceLock::new(),
        }
    }

    /// An object that is returned and not stored, as after a dry run.
    pub(crate) fn unsaved(value: Value) -> Self {
        Self {
            value,
            revision: 0,
            written: OnceLock::new(),
            metadata: OnceLock::new(),
        }
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    fn written(&self) -> &Written {
        self.written.get_or_init(|| Written::new(&self.value))
    }

    /// The event for a change to this state.
    pub(crate) fn modified_event(&self) -> Bytes {
        self.written().event.clone()
    }

    /// The whole object.
    pub(crate) fn json(&self) -> Bytes {
        let event = &self.written().event;
        event.slice(BEFORE.len()..event.len() - AFTER.len())
    }

    /// The object without its opening brace, kind and apiVersion: an item of a typed list.
    pub(crate) fn json_tail(&self) -> &[u8] {
        let Written { event, tail } = self.written();
        event.get(*tail..event.len() - AFTER.len()).unwrap_or_default()
    }

    /// The metadata of the object, for clients that request only metadata.
    pub(crate) fn metadata_json(&self) -> &Bytes {
        self.metadata
            .get_or_init(|| metadata_only(&self.value).to_string().into())
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

/// The metadata of an object, as a `PartialObjectMetadata`.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

/// The text at a pointer, empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a pointer. Every watcher evaluates a few pointers for each object, and the library copies each step of
/// a pointer twice to look for escapes, which hardly ever occur.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    pointer
        .split('/')
        .skip(1)
        .try_fold(value, |value, step| match value {
            Value::Object(map) => map.get(step),
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_the_library_finds_it() {
        let value = json!({"a": [{"b/c": "escaped", "b": "plain"}], "": "empty", "n": 1});
        for pointer in ["/a/0/b~1c", "/a/0/b", "/a/1/b", "/a/x", "/", "", "/n", "/missing"] {
            let expected = value.pointer(pointer).and_then(Value::as_str);
            assert_eq!(text(&value, pointer), expected.unwrap_or_default(), "{pointer}");
        }
    }

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
        let event: Value = serde_json::from_slice(&object.modified_event()).unwrap();
        assert_eq!(event, json!({"type": "MODIFIED", "object": whole}));
        let metadata: Value = serde_json::from_slice(object.metadata_json()).unwrap();
        assert_eq!(metadata["metadata"], whole["metadata"]);
        assert_eq!(metadata["kind"], "PartialObjectMetadata");
    }
}
