//! Events have two representations, `v1` and `events.k8s.io/v1`. They are stored in the older one.

use serde_json::{Value, json};

/// Names of fields: older, newer.
const FIELDS: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
const CONTROLLER: (&str, &str) = ("reportingComponent", "reportingController");

fn rename(event: &Value, api_version: &str, name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let fields = event.as_object().into_iter().flatten();
    let mut renamed: Value = fields
        .map(|(key, value)| (name(key).unwrap_or(key).to_owned(), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    renamed["apiVersion"] = json!(api_version);
    renamed
}

/// The event in `events.k8s.io/v1`.
pub(crate) fn to_new(event: &Value) -> Value {
    let mut new = rename(event, "events.k8s.io/v1", |key| {
        FIELDS
            .iter()
            .chain([&CONTROLLER])
            .find(|(old, _)| *old == key)
            .map(|(_, new)| *new)
    });
    if let Some(map) = new.as_object_mut() {
        // The newer representation omits them.
        map.retain(|key, value| {
            !(matches!(key.as_str(), "reportingController" | "reportingInstance") && value == "")
        });
    }
    new
}

/// The event in the stored representation.
pub(crate) fn to_old(event: &Value) -> Value {
    let mut old = rename(event, "v1", |key| {
        FIELDS
            .iter()
            .chain([&CONTROLLER])
            .find(|(_, new)| *new == key)
            .map(|(old, _)| *old)
    });
    for (key, empty) in [("involvedObject", json!({})), ("source", json!({}))] {
        if old.get(key).is_none() {
            old[key] = empty;
        }
    }
    old
}

/// The original writes these fields even if they are not set.
pub(crate) fn complete(event: &mut Value) {
    let Some(map) = event.as_object_mut() else { return };
    for (key, empty) in [
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        if !map.contains_key(key) {
            map.insert(key.to_owned(), empty);
        }
    }
}

/// A field selector with the field names of the stored representation.
pub(crate) fn old_fields(selector: &str) -> String {
    selector
        .replace("regarding.", "involvedObject.")
        .replace(CONTROLLER.1, CONTROLLER.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_faces_say_the_same() {
        let new = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}, "note": "hello",
            "regarding": {"kind": "Pod", "name": "p"}, "reportingController": "c", "deprecatedSource": {}, "reason": "R"});
        let old = to_old(&new);
        assert_eq!(old["message"], "hello");
        assert_eq!(old["involvedObject"]["name"], "p");
        assert_eq!(to_new(&old), new);
    }
}
