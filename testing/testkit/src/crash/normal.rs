//! The state of a cluster without the fields that always differ between two runs.

use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams, core::NamespaceResourceScope};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Fields of `metadata` that the server sets.
const SERVER_FIELDS: [&str; 4] = ["uid", "resourceVersion", "creationTimestamp", "managedFields"];

/// All objects of a kind in a namespace by name, normalised.
pub async fn objects<K>(client: Client, namespace: &str) -> Value
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client, namespace);
    let listed = api
        .list(&ListParams::default())
        .await
        .unwrap_or_else(|error| panic!("list {} in {namespace}: {error}", K::plural(&())));
    let by_name = |object: &K| {
        let mut value = serde_json::to_value(object).expect("an object is JSON");
        normalise(&mut value);
        (object.name_any(), value)
    };
    Value::Object(listed.items.iter().map(by_name).collect())
}

/// Removes fields that the server sets, and masks times and unique identifiers everywhere.
pub fn normalise(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.retain(|name, _| !SERVER_FIELDS.contains(&name.as_str()));
            }
            fields.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::String(text) if is_time(text) => "<time>".clone_into(text),
        Value::String(text) if is_uuid(text) => "<uid>".clone_into(text),
        _ => {}
    }
}

/// Changes every string, keys included.
pub(super) fn map_strings(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Array(items) => items.into_iter().map(|item| map_strings(item, change)).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, field)| (change(&name), map_strings(field, change)))
                .collect(),
        ),
        other => other,
    }
}

/// How many characters of a value a difference shows.
const SHOWN: usize = 300;

/// The differences, one line each.
pub fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", expected, found, &mut lines);
    lines
}

fn compare(place: &str, expected: &Value, found: &Value, lines: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let absent = Value::Null;
            let added = found.keys().filter(|&name| !expected.contains_key(name));
            for name in expected.keys().chain(added) {
                let of = |fields: &Map<String, Value>| fields.get(name).unwrap_or(&absent).clone();
                compare(&format!("{place}/{name}"), &of(expected), &of(found), lines);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(&format!("{place}/{index}"), expected, found, lines);
            }
        }
        _ if expected == found => {}
        _ => lines.push(format!(
            "{place}: expected {}, found {}",
            shown(expected),
            shown(found)
        )),
    }
}

/// The beginning of a value: a whole object in a line helps nobody.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// RFC 3339 in UTC, as Kubernetes writes it.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && bytes.ends_with(b"Z")
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')]
            .iter()
            .all(|&(at, byte)| bytes[at] == byte)
        && bytes[..4].iter().all(u8::is_ascii_digit)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{differences, map_strings, normalise};

    #[test]
    fn what_the_server_sets_is_gone_and_the_rest_stays() {
        let mut object = json!({
            "metadata": {
                "name": "a",
                "uid": "6f1c9a0e-0000-4000-8000-000000000000",
                "resourceVersion": "5",
                "managedFields": [],
                "ownerReferences": [{"name": "o", "uid": "6f1c9a0e-0000-4000-8000-000000000001"}],
            },
            "status": {"at": "2026-11-15T12:00:00Z", "text": "2026 was a year", "ready": true},
        });
        normalise(&mut object);
        let expected = json!({
            "metadata": {"name": "a", "ownerReferences": [{"name": "o", "uid": "<uid>"}]},
            "status": {"at": "<time>", "text": "2026 was a year", "ready": true},
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn differences_name_the_place() {
        let expected = json!({"a": {"b": 1}, "c": [1, 2], "gone": true});
        let found = json!({"a": {"b": 2}, "c": [1, 2], "new": "x"});
        assert_eq!(
            differences(&expected, &found),
            [
                "/a/b: expected 1, found 2",
                "/gone: expected true, found null",
                "/new: expected null, found \"x\"",
            ]
        );
        assert!(differences(&expected, &expected).is_empty());
    }

    #[test]
    fn keys_are_masked_too() {
        let masked = map_strings(json!({"run-7": ["run-7/x"]}), &|text| {
            text.replace("run-7", "<run>")
        });
        assert_eq!(masked, json!({"<run>": ["<run>/x"]}));
    }
}
