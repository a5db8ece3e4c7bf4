//! Merges an applied configuration into an object, and removes owned fields from it.

use serde_json::{Map, Value};

use super::{At, child, elements, is_leaf, items};
use crate::apply::set::{Element, Set};

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

/// Items keep the order of the configuration; items that it does not contain stay near their neighbours.
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

/// Removes the fields of a set from a value. A container that becomes empty is set to null.
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
