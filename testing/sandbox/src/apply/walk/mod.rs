//! The four traversals of server-side apply over typed values: list the fields of a value, compare two values, merge an
//! applied configuration into an object, and remove owned fields from it.

mod difference;
mod merge;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub(crate) use difference::Difference;
pub(crate) use merge::{merge, remove};

use super::set::{Element, Set};
use crate::schema::{ListType, Schema, Shape};

/// The schema at a path, if it is known. Without it maps are merged and lists are atomic.
type At<'a> = Option<Schema<'a>>;

/// Whether a value is owned and merged as a whole.
fn is_leaf(schema: At<'_>, value: &Value) -> bool {
    match value {
        Value::Object(_) => {
            schema.is_some_and(|s| s.is_atomic_object() || !matches!(s.shape(), Shape::Object | Shape::Any))
        }
        Value::Array(_) => list_type(schema) == ListType::Atomic,
        _ => true,
    }
}

pub(super) fn list_type(schema: At<'_>) -> ListType {
    schema.map_or(ListType::Atomic, Schema::list_type)
}

fn child<'a>(schema: At<'a>, key: &str) -> At<'a> {
    schema.and_then(|schema| schema.child(key))
}

fn items(schema: At<'_>) -> At<'_> {
    schema.and_then(Schema::items)
}

/// The items of a list of type set or map, each with its identity, in order.
pub(super) fn elements<'v>(schema: At<'_>, value: Option<&'v Value>) -> Vec<(Element, &'v Value)> {
    let kind = list_type(schema);
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(|item| {
        let element = match &kind {
            ListType::Map(keys) => {
                let defaulted = |key: &str| child(items(schema), key).and_then(|s| s.default().cloned());
                let value = |key: &str| item.get(key).cloned().or_else(|| defaulted(key));
                Element::keyed(
                    &keys
                        .iter()
                        .filter_map(|key| Some((key.as_str(), value(key)?)))
                        .collect::<BTreeMap<_, _>>(),
                )
            }
            _ => Element::value(item),
        };
        (element, item)
    })
    .collect()
}

/// The fields that a value has.
pub(crate) fn fields(schema: At<'_>, value: &Value) -> Set {
    let mut set = Set::default();
    match value {
        Value::Object(map) if !is_leaf(schema, value) => {
            for (key, inner) in map {
                let (at, element) = (child(schema, key), Element::field(key));
                let declared = schema.is_some_and(|schema| schema.field(key).is_some());
                let empty = inner.as_object().is_some_and(Map::is_empty);
                if is_leaf(at, inner) || empty || !declared {
                    set.insert(element.clone());
                }
                add_below(&mut set, element, fields(at, inner));
            }
        }
        Value::Array(_) if !is_leaf(schema, value) => {
            for (element, item) in elements(schema, Some(value)) {
                set.insert(element.clone());
                add_below(&mut set, element, fields(items(schema), item));
            }
        }
        _ => {}
    }
    set
}

fn add_below(set: &mut Set, element: Element, below: Set) {
    if !below.is_empty() {
        *set.below_mut(element) = below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods() -> At<'static> {
        Schema::of_kind("", "v1", "Pod")
    }

    #[test]
    fn a_list_merges_by_its_keys() {
        let old = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}});
        let new = json!({"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]}});
        let merged = merge(pods(), Some(&old), Some(&new));
        assert_eq!(
            merged["spec"]["containers"],
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}])
        );
        let difference = Difference::between(pods(), &old, &merged);
        assert_eq!(
            difference.modified.paths(),
            [".spec.containers[name=\"b\"].image"]
        );
        assert_eq!(
            difference.added.paths(),
            [
                ".spec.containers[name=\"c\"]",
                ".spec.containers[name=\"c\"].name"
            ]
        );
        let set = fields(pods(), &new);
        assert_eq!(
            remove(pods(), &merged, &set)["spec"]["containers"],
            json!([{"name": "a", "image": "1"}])
        );
    }

    #[test]
    fn default_keys_identify_ports() {
        let value = json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}});
        let paths = fields(pods(), &value).paths();
        assert!(
            paths
                .contains(&r#".spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]"#.to_owned()),
            "{paths:?}"
        );
    }
}
