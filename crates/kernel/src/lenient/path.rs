//! Paths into a JSON value.

use serde_json::Value;

use crate::text::shorten;

/// The longest path in a message.
const LONGEST: usize = 512;

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Field(String),
    Item(usize),
}

pub(super) fn steps(path: &serde_path_to_error::Path) -> Vec<Step> {
    use serde_path_to_error::Segment;
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(Step::Field(key.clone())),
            Segment::Seq { index } => Some(Step::Item(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

pub(super) fn shown(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            Step::Field(name) if shown.is_empty() => shown.push_str(name),
            Step::Field(name) => {
                shown.push('.');
                shown.push_str(name);
            }
            Step::Item(index) => shown.extend(["[", &index.to_string(), "]"]),
        }
    }
    shorten(&shown, LONGEST)
}

pub(super) fn children(value: &Value) -> Vec<Step> {
    match value {
        Value::Object(fields) => fields.keys().cloned().map(Step::Field).collect(),
        Value::Array(items) => (0..items.len()).map(Step::Item).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn at<'a>(value: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Item(index) => value.get_mut(index),
    })
}

/// Sets or removes the value at a path.
pub(super) fn put(value: &mut Value, path: &[Step], what: Option<Value>) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    match (at(value, parents), last, what) {
        (Some(Value::Object(fields)), Step::Field(name), Some(what)) => {
            fields.insert(name.clone(), what);
        }
        (Some(Value::Object(fields)), Step::Field(name), None) => {
            fields.remove(name);
        }
        (Some(Value::Array(items)), Step::Item(index), Some(what)) if *index < items.len() => {
            if let Some(item) = items.get_mut(*index) {
                *item = what;
            }
        }
        (Some(Value::Array(items)), Step::Item(index), None) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}
