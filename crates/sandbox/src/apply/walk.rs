//! The four walks of server-side apply over typed values: which fields a value has, what differs between two,
//! how an applied configuration is merged into an object, and how owned fields are taken out of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::{Element, Set};
use crate::schema::{ListType, Schema, Shape};

/// The schema at a place, if one is known; without it maps are merged and lists are atomic.
type At<'a> = Option<Schema<'a>>;

/// What is owned and merged as one.
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

/// The items of a list that is a set or a map, each with its identity, in order.
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

/// What changed between two values.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) added: Set,
    pub(crate) modified: Set,
    pub(crate) removed: Set,
}

impl Difference {
    pub(crate) fn between(schema: At<'_>, old: &Value, new: &Value) -> Self {
        let mut difference = Self::default();
        difference.walk(schema, Some(old), Some(new), &mut Vec::new());
        difference
    }

    fn walk(&mut self, schema: At<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<Element>) {
        let some = new.or(old).unwrap_or(&Value::Null);
        let other = old.or(new).unwrap_or(&Value::Null);
        let empty = |value: Option<&Value>| match value {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => true,
        };
        // A null stands for an empty container of whatever the other side is.
        let same_shape =
            some.is_object() == other.is_object() && some.is_array() == other.is_array() || other.is_null();
        if is_leaf(schema, some) || !same_shape || (empty(old) && empty(new)) {
            match (old, new) {
                (None, _) => self.added.insert_path(path),
                (_, None) => self.removed.insert_path(path),
                (Some(old), Some(new)) if old != new => self.modified.insert_path(path),
                _ => {}
            }
            return;
        }
        if some.is_object() {
            for key in keys(old, new) {
                path.push(Element::field(key));
                self.walk(child(schema, key), field(old, key), field(new, key), path);
                path.pop();
            }
        } else {
            let (before, after) = (elements(schema, old), elements(schema, new));
            let find = |list: &[(Element, &Value)], element: &Element| {
                list.iter().position(|(known, _)| known == element)
            };
            for (element, item) in &after {
                path.push(element.clone());
                let old = find(&before, element)
                    .and_then(|index| before.get(index))
                    .map(|(_, item)| *item);
                self.walk(items(schema), old, Some(item), path);
                path.pop();
            }
            for (element, item) in before
                .iter()
                .filter(|(element, _)| find(&after, element).is_none())
            {
                path.push(element.clone());
                self.walk(items(schema), Some(item), None, path);
                path.pop();
            }
        }
        match (old, new) {
            (None, _) => self.added.insert_path(path),
            (_, None) => self.removed.insert_path(path),
            _ => {}
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

fn field<'v>(value: Option<&'v Value>, key: &str) -> Option<&'v Value> {
    value.and_then(|value| value.get(key))
}

fn keys<'v>(old: Option<&'v Value>, new: Option<&'v Value>) -> Vec<&'v str> {
    let own = |value: Option<&'v Value>| value.and_then(Value::as_object);
    let mut keys: Vec<&str> = own(new)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    keys.extend(
        own(old)
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .filter(|key| field(new, key).is_none()),
    );
    keys
}

/// Merges an applied configuration into an object.
pub(crate) fn merge(schema: At<'_>, old: Option<&Value>, new: Option<&Value>) -> Value {
    let (Some(old), Some(new)) = (old, new) else {
        return new.or(old).cloned().unwrap_or_default();
    };
    let same_shape = old.is_object() == new.is_object() && old.is_array() == new.is_array();
    if is_leaf(schema, new) || !same_shape {
        return new.clone();
    }
    if new.is_object() {
        let mut merged = old.as_object().cloned().unwrap_or_default();
        for (key, value) in new.as_object().into_iter().flatten() {
            let value = merge(child(schema, key), old.get(key), Some(value));
            merged.insert(key.clone(), value);
        }
        return Value::Object(merged);
    }
    merge_list(schema, old, new)
}

/// Items keep the order of the configuration; items that it does not name stay near their neighbours.
fn merge_list(schema: At<'_>, old: &Value, new: &Value) -> Value {
    let (before, after) = (elements(schema, Some(old)), elements(schema, Some(new)));
    let find =
        |list: &[(Element, &Value)], element: &Element| list.iter().position(|(known, _)| known == element);
    let item = |element: &Element| {
        let old = find(&before, element)
            .and_then(|index| before.get(index))
            .map(|(_, item)| *item);
        let new = find(&after, element)
            .and_then(|index| after.get(index))
            .map(|(_, item)| *item);
        merge(items(schema), old, new)
    };
    let mut shared = after
        .iter()
        .filter(|(element, _)| find(&before, element).is_some())
        .map(|(element, _)| element);
    let mut next_shared = shared.next();
    let (mut old_items, mut new_items) = (before.iter().peekable(), after.iter().peekable());
    let mut merged = Vec::new();
    while old_items.peek().is_some() || new_items.peek().is_some() {
        if let (Some((old, _)), Some((new, _))) = (old_items.peek(), new_items.peek()) {
            if old == new {
                merged.push(item(new));
                old_items.next();
                new_items.next();
                next_shared = shared.next();
                continue;
            }
            if find(&after, old).is_some() && next_shared != Some(old) {
                old_items.next();
                continue;
            }
        }
        if let Some((old, _)) = old_items.peek()
            && find(&after, old).is_none()
        {
            merged.push(item(old));
            old_items.next();
        } else if let Some((new, _)) = new_items.next() {
            merged.push(item(new));
            if next_shared == Some(new) {
                next_shared = shared.next();
            }
        } else {
            old_items.next();
        }
    }
    Value::Array(merged)
}

/// Takes the fields of a set out of a value. A container that is emptied becomes null, which is still there.
pub(crate) fn remove(schema: At<'_>, value: &Value, set: &Set) -> Value {
    if is_leaf(schema, value) {
        return value.clone();
    }
    match value {
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .iter()
                .map(|(key, inner)| (key, Element::field(key), inner))
                .filter(|(_, element, _)| !set.has(element))
                .map(|(key, element, inner)| {
                    let below = set.below(&element);
                    let inner =
                        below.map_or_else(|| inner.clone(), |below| remove(child(schema, key), inner, below));
                    (key.clone(), inner)
                })
                .collect();
            if kept.is_empty() && !map.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        Value::Array(list) => {
            let kept: Vec<Value> = elements(schema, Some(value))
                .into_iter()
                .filter(|(element, _)| !set.has(element))
                .map(|(element, item)| {
                    let below = set.below(&element);
                    below.map_or_else(|| item.clone(), |below| remove(items(schema), item, below))
                })
                .collect();
            if kept.is_empty() && !list.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        _ => value.clone(),
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
