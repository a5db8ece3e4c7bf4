//! What of an object is ours, by the API server's own record.
//!
//! `managedFields` says which fields our last apply has set and nobody has taken over since. The values that
//! these have now, next to what we intend, tell whether anybody has changed them: a field that another has
//! set is no longer in the record, and one that was removed is neither there.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::apply::quantity;

/// Half a SHA-256: enough to tell two states of one object apart.
pub(crate) type Digest = [u8; 16];

/// The digest of what we own of a live object; `None` when the record names no apply of ours.
pub(super) fn of_live(live: &Value, manager: &str) -> Option<Digest> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let ours = |entry: &&Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    };
    let fields = entries.iter().find(ours)?.get("fieldsV1")?;
    Some(digest(&extract(live, fields)))
}

/// The digest of what we intend, which is the same when the object is as intended. A server may write a value in
/// another way than we do; then they differ although nothing is wrong, which costs a look, and no more.
pub(super) fn of_intent(body: &Value) -> Digest {
    let mut body = body.clone();
    if let Some(object) = body.as_object_mut() {
        object.remove("apiVersion");
        object.remove("kind");
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for identity in ["name", "namespace", "uid", "resourceVersion"] {
            metadata.remove(identity);
        }
    }
    digest(&body)
}

/// The part of a value that a set of fields names.
fn extract(live: &Value, fields: &Value) -> Value {
    let Some(fields) = fields
        .as_object()
        .filter(|fields| fields.keys().any(|key| key != "."))
    else {
        return live.clone();
    };
    match live {
        Value::Object(live) => {
            let named = |(key, fields): (&String, &Value)| {
                let name = key.strip_prefix("f:")?;
                Some((name.to_owned(), extract(live.get(name)?, fields)))
            };
            Value::Object(fields.iter().filter_map(named).collect::<Map<_, _>>())
        }
        Value::Array(items) => items
            .iter()
            .filter_map(|item| extract_item(item, fields))
            .collect(),
        scalar => scalar.clone(),
    }
}

/// The part of a list's item that is ours, if one of the fields means this item: by its keys, or by its value.
fn extract_item(item: &Value, fields: &Map<String, Value>) -> Option<Value> {
    fields.iter().find_map(|(key, fields)| {
        if let Some(keys) = key.strip_prefix("k:") {
            let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
            let same = keys.iter().all(|(name, value)| item.get(name) == Some(value));
            same.then(|| extract(item, fields))
        } else {
            let value: Value = serde_json::from_str(key.strip_prefix("v:")?).ok()?;
            (value == *item).then(|| item.clone())
        }
    })
}

fn digest(value: &Value) -> Digest {
    let mut hash = Sha256::new();
    feed(&mut hash, value);
    let whole: [u8; 32] = hash.finalize().into();
    let mut half = Digest::default();
    half.copy_from_slice(whole.split_at(16).0);
    half
}

/// Feeds a value in one way of writing it: keys in order, nothing that is empty, quantities as numbers.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(_, field)| !is_empty(field)).collect();
            fields.sort_by_key(|(name, _)| *name);
            hash.update(b"{");
            for (name, field) in fields {
                feed_text(hash, name);
                feed(hash, field);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
            }
            hash.update(b"]");
        }
        Value::String(text) => match quantity(text) {
            Some(number) => feed_text(hash, &number.to_string()),
            None => feed_text(hash, text),
        },
        scalar => hash.update(scalar.to_string()),
    }
}

/// With its length, so that no two texts in a row read like two others.
fn feed_text(hash: &mut Sha256, text: &str) {
    hash.update(text.len().to_be_bytes());
    hash.update(text);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A Deployment as we intend it.
    fn intent() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "a", "namespace": "n", "labels": { "app": "a" }, "annotations": {} },
            "spec": {
                "selector": { "matchLabels": { "app": "a" } },
                "template": { "spec": {
                    "containers": [{
                        "name": "a", "image": "a:1", "ports": [{ "containerPort": 80 }],
                        "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
                        "resources": { "limits": { "cpu": "1000m" } },
                    }],
                    "volumes": [{ "name": "v", "emptyDir": {} }],
                } },
            },
        })
    }

    /// The same as the API server stores it: with defaults, its own way to write quantities, and its record.
    fn live() -> Value {
        let fields = json!({
            "f:metadata": { "f:labels": { "f:app": {} } },
            "f:spec": {
                "f:selector": {},
                "f:template": { "f:spec": {
                    "f:containers": { "k:{\"name\":\"a\"}": {
                        ".": {}, "f:name": {}, "f:image": {},
                        "f:env": { "k:{\"name\":\"A\"}": {
                            ".": {}, "f:name": {}, "f:valueFrom": { "f:secretKeyRef": {} },
                        } },
                        "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                            ".": {}, "f:containerPort": {},
                        } },
                        "f:resources": { "f:limits": { "f:cpu": {} } },
                    } },
                    "f:volumes": { "k:{\"name\":\"v\"}": { ".": {}, "f:emptyDir": {}, "f:name": {} } },
                } },
            },
        });
        let mut live = intent();
        live["metadata"]["uid"] = json!("u");
        live["metadata"]["labels"]["theirs"] = json!("x");
        live["metadata"]["managedFields"] = json!([
            { "manager": "us", "operation": "Update", "fieldsV1": {} },
            { "manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {} },
            { "manager": "us", "operation": "Apply", "fieldsV1": fields },
        ]);
        live["spec"]["replicas"] = json!(1);
        let container = &mut live["spec"]["template"]["spec"]["containers"][0];
        container["ports"][0]["protocol"] = json!("TCP");
        container["resources"]["limits"]["cpu"] = json!("1");
        container["terminationMessagePath"] = json!("/dev/log");
        live["spec"]["template"]["spec"]["containers"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({ "name": "injected", "image": "proxy" }));
        live
    }

    #[test]
    fn what_servers_and_others_add_is_not_ours() {
        assert_eq!(of_live(&live(), "us"), Some(of_intent(&intent())));
    }

    #[test]
    fn a_value_that_changed_under_our_name_is_seen() {
        let mut live = live();
        live["spec"]["template"]["spec"]["containers"][1]["image"] = json!("a:2");
        assert_ne!(of_live(&live, "us"), Some(of_intent(&intent())));
    }

    #[test]
    fn a_field_that_another_has_taken_is_seen() {
        let mut live = live();
        let ours = &mut live["metadata"]["managedFields"][2]["fieldsV1"];
        ours["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"a\"}"]
            .as_object_mut()
            .unwrap()
            .remove("f:image");
        assert_ne!(of_live(&live, "us"), Some(of_intent(&intent())));
    }

    #[test]
    fn without_an_apply_of_ours_nothing_is_known() {
        assert_eq!(of_live(&live(), "others"), None);
        assert_eq!(of_live(&intent(), "us"), None);
    }

    #[test]
    fn items_of_a_set_are_ours_by_their_value() {
        let mut live = json!({ "metadata": { "finalizers": ["theirs", "ours"] } });
        let fields = json!({ "f:metadata": { "f:finalizers": { "v:\"ours\"": {} } } });
        live["metadata"]["managedFields"] =
            json!([{ "manager": "us", "operation": "Apply", "fieldsV1": fields }]);
        let intent = json!({ "metadata": { "finalizers": ["ours"] } });
        assert_eq!(of_live(&live, "us"), Some(of_intent(&intent)));
    }

    /// The API server drops the value of such an environment variable.
    #[test]
    fn a_text_that_is_empty_is_as_good_as_none() {
        let variable = |value: Value| of_intent(&json!({ "env": [value] }));
        assert_eq!(
            variable(json!({ "name": "A", "value": "" })),
            variable(json!({ "name": "A" }))
        );
        assert_ne!(
            variable(json!({ "name": "A", "value": "x" })),
            variable(json!({ "name": "A" }))
        );
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        assert_ne!(
            of_intent(&json!({ "a": ["b", "cd"] })),
            of_intent(&json!({ "a": ["bc", "d"] }))
        );
        assert_ne!(of_intent(&json!({ "ab": "c" })), of_intent(&json!({ "a": "bc" })));
    }
}
