//! A validation rule, and the fields that it applies to.

use serde_json::Value;

use super::super::names;
use crate::error::{Fault, FieldError};

/// A rule about one field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// One of these values.
    OneOf(&'static [&'static str]),
    /// At least this number.
    AtLeast(i64),
    /// A port, if it is a number.
    Port,
    /// Must be set; the message if it is not.
    Required(&'static str),
    /// A lower-case label.
    Label,
    /// The values of this field must differ between items.
    Unique(&'static str),
}

/// Calls `found` with every value at a path, with null if the last step does not exist.
pub(super) fn each<'v>(value: &'v Value, path: &str, found: &mut dyn FnMut(&str, &'v Value)) {
    walk(value, path, "", found);
}

fn walk<'v>(value: &'v Value, path: &str, at: &str, found: &mut dyn FnMut(&str, &'v Value)) {
    if path.is_empty() {
        return found(at, value);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, every) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
    let at = if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    };
    match (value.get(key), every) {
        (Some(inner), false) => walk(inner, rest, &at, found),
        (Some(Value::Array(items)), true) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, rest, &format!("{at}[{index}]"), found);
            }
        }
        (None, false) if rest.is_empty() => found(&at, &Value::Null),
        _ => {}
    }
}

impl Rule {
    pub(super) fn check(self, at: &str, value: &Value, errors: &mut Vec<FieldError>) {
        match (self, value) {
            (Self::OneOf(known), Value::String(word))
                if !known.contains(&word.as_str()) && !word.is_empty() =>
            {
                let known: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
                let detail = format!("supported values: {}", known.join(", "));
                errors.push(FieldError::new(
                    Fault::NotSupported,
                    at,
                    Some(value.clone()),
                    detail,
                ));
            }
            (Self::AtLeast(least), Value::Number(_))
                if value.as_i64().is_some_and(|number| number < least) =>
            {
                let detail = if least == 1 {
                    "must be greater than 0"
                } else {
                    "must be greater than or equal to 0"
                };
                errors.push(FieldError::invalid(at, value, detail));
            }
            (Self::Port, Value::Number(_)) if value.as_i64() == Some(0) && at.ends_with("containerPort") => {
                errors.push(FieldError::required(at, ""));
            }
            (Self::Port, Value::Number(_))
                if !value.as_i64().is_some_and(|port| (1..=65535).contains(&port)) =>
            {
                errors.push(FieldError::invalid(
                    at,
                    value,
                    "must be between 1 and 65535, inclusive",
                ));
            }
            (Self::Required(words), value) if is_nothing(value) => {
                errors.push(FieldError::required(at, words));
            }
            (Self::Label, Value::String(name)) if !name.is_empty() => {
                if let Some(detail) = names::label_problem(name) {
                    errors.push(FieldError::invalid(at, value, detail));
                }
            }
            (Self::Unique(key), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let name = item.get(key).filter(|name| !is_nothing(name));
                    let known = items
                        .iter()
                        .take(index)
                        .any(|other| name.is_some() && other.get(key) == name);
                    if known {
                        let at = format!("{at}[{index}].{key}");
                        errors.push(FieldError::new(Fault::Duplicate, at, name.cloned(), ""));
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
