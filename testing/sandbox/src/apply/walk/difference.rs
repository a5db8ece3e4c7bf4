//! The difference between two values.

use serde_json::Value;

use super::{At, child, elements, is_leaf, items};
use crate::apply::set::{Element, Set};

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
        // Most of an object stays the same, and to compare it is cheaper than to name its fields.
        if old.is_some() && old == new {
            return;
        }
        let some = new.or(old).unwrap_or(&Value::Null);
        let other = old.or(new).unwrap_or(&Value::Null);
        let empty = |value: Option<&Value>| match value {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => true,
        };
        // A null represents an empty container of the other side's type.
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
