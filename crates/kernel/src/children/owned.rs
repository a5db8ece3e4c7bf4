//! The fields of an object that are ours, according to the API server.
//!
//! `managedFields` lists the fields that our last apply has set and no other manager has taken over. Comparing their
//! current values with the intent shows whether anyone has changed them: a field that another manager has set, or that
//! was removed, is no longer in our entry.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::apply::quantity;

/// Half a SHA-256: enough to distinguish two states of one object.
pub(crate) type Digest = [u8; 16];

/// The digest of our fields in a live object; `None` if it has no entry of our field manager.
pub(super) fn of_live(live: &Value, manager: &str) -> Option<Digest> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let ours = |entry: &&Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    };
    let fields = entries.iter().find(ours)?.get("fieldsV1")?;
    Some(digest(&extract(live, fields)))
}

/// The digest of the intent, which is equal if the object is as intended. If the server writes a value in another form,
/// they differ although nothing is wrong, which only costs a read.
pub(super) fn of_intent(body: &Value) -> Digest {
    const KIND: &[&str] = &["apiVersion", "kind"];
    const IDENTITY: &[&str] = &["name", "namespace", "uid", "resourceVersion"];
    digest(&without(body, KIND, |name, field| match name {
        "metadata" => without(field, IDENTITY, |_, field| Part::Whole(field)),
        _ => Part::Whole(field),
    }))
}

/// A part of a value. It borrows, because only a digest is kept and there can be ten thousand children.
enum Part<'a> {
    Whole(&'a Value),
    Fields(Vec<(&'a str, Part<'a>)>),
    Items(Vec<Part<'a>>),
}

/// The fields of a value except these.
fn without<'a>(value: &'a Value, names: &[&str], part: impl Fn(&str, &'a Value) -> Part<'a>) -> Part<'a> {
    let Value::Object(fields) = value else {
        return Part::Whole(value);
    };
    let others = fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    Part::Fields(
        others
            .map(|(name, field)| (name.as_str(), part(name, field)))
            .collect(),
    )
}

/// The part of a value that a set of fields selects.
fn extract<'a>(live: &'a Value, fields: &'a Value) -> Part<'a> {
    let Some(fields) = fields
        .as_object()
        .filter(|fields| fields.keys().any(|key| key != "."))
    else {
        return Part::Whole(live);
    };
    match live {
        Value::Object(live) => {
            let named = |(key, fields): (&'a String, &'a Value)| {
                let name = key.strip_prefix("f:")?;
                Some((name, extract(live.get(name)?, fields)))
            };
            Part::Fields(fields.iter().filter_map(named).collect())
        }
        Value::Array(items) => {
            // Parsed once for the list, not once for each item: a container can have fifty variables.
            let meant: Vec<_> = fields.iter().filter_map(Meant::read).collect();
            let ours = |item| meant.iter().find_map(|meant| meant.part_of(item));
            Part::Items(items.iter().filter_map(ours).collect())
        }
        _ => Part::Whole(live),
    }
}

/// The list items that a field selects, by their keys or their value.
enum Meant<'a> {
    Keys(Map<String, Value>, &'a Value),
    Value(Value),
}

impl<'a> Meant<'a> {
    fn read((key, fields): (&'a String, &'a Value)) -> Option<Self> {
        if let Some(keys) = key.strip_prefix("k:") {
            return Some(Self::Keys(serde_json::from_str(keys).ok()?, fields));
        }
        let value = serde_json::from_str(key.strip_prefix("v:")?).ok()?;
        Some(Self::Value(value))
    }

    /// The part of the item that is ours, if this selects it.
    fn part_of(&self, item: &'a Value) -> Option<Part<'a>> {
        match self {
            Self::Keys(keys, fields) => {
                let same = keys.iter().all(|(name, value)| item.get(name) == Some(value));
                same.then(|| extract(item, fields))
            }
            Self::Value(value) => (value == item).then_some(Part::Whole(item)),
        }
    }
}

fn digest(part: &Part<'_>) -> Digest {
    let mut hash = Sha256::new();
    part.feed(&mut hash);
    let whole: [u8; 32] = hash.finalize().into();
    let mut half = Digest::default();
    half.copy_from_slice(whole.split_at(16).0);
    half
}

impl Part<'_> {
    /// Hashes the part as [`feed`] hashes a value.
    fn feed(&self, hash: &mut Sha256) {
        match self {
            Self::Whole(value) => feed(hash, value),
            Self::Fields(fields) => {
                let mut fields: Vec<_> = fields.iter().filter(|(_, field)| !field.is_empty()).collect();
                fields.sort_by_key(|(name, _)| *name);
                hash.update(b"{");
                for (name, field) in fields {
                    feed_text(hash, name);
                    field.feed(hash);
                }
                hash.update(b"}");
            }
            Self::Items(items) => {
                hash.update(b"[");
                for item in items {
                    item.feed(hash);
                }
                hash.update(b"]");
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Whole(value) => is_empty(value),
            Self::Fields(fields) => fields.iter().all(|(_, field)| field.is_empty()),
            Self::Items(items) => items.is_empty(),
        }
    }
}

/// Hashes a value in canonical form: keys in order, nothing that is empty, quantities as numbers.
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

/// With its length, so that two consecutive texts are unambiguous.
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

    /// The same object as the API server stores it: with defaults, canonical quantities, and managed fields.
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
