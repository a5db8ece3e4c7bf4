//! Rules for one value: range, length, pattern, format.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;
use regex::Regex;
use serde_json::{Value, json};

use super::super::{Schema, formats};
use crate::error::{Fault, FieldError};

/// One of the listed values.
pub(super) fn enumeration(node: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(allowed) = node.get("enum").and_then(Value::as_array) else {
        return;
    };
    if allowed.contains(value) {
        return;
    }
    let list: Vec<String> = allowed
        .iter()
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| format!("\"{value}\""), |text| format!("\"{text}\""))
        })
        .collect();
    let detail = format!("supported values: {}", list.join(", "));
    errors.push(FieldError::new(
        Fault::NotSupported,
        path,
        Some(value.clone()),
        detail,
    ));
}

/// Length, pattern and format of a string.
pub(super) fn string(schema: Schema<'_>, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    let number = |key: &str| node.get(key).and_then(Value::as_u64);
    let shown = json!(text);
    let length = text.chars().count() as u64;
    if let Some(max) = number("maxLength").filter(|max| length > *max) {
        let detail = format!("may not be more than {max} bytes");
        errors.push(FieldError::new(Fault::TooLong, path, None, detail));
    }
    if let Some(min) = number("minLength").filter(|min| length < *min) {
        let detail = format!("{path} in body should be at least {min} chars long");
        errors.push(FieldError::invalid(path, &shown, detail));
    }
    if let Some(pattern) = node.get("pattern").and_then(Value::as_str)
        && compiled(pattern).is_some_and(|regex| !regex.is_match(text))
    {
        errors.push(FieldError::invalid(
            path,
            &shown,
            format!("{path} in body should match '{pattern}'"),
        ));
    }
    let format = schema.format();
    if !schema.is_int_or_string() && !formats::holds(format, text) {
        let detail = format!("{path} in body must be of type {format}: \"{text}\"");
        errors.push(FieldError::new(Fault::TypeInvalid, path, Some(shown), detail));
    }
}

/// Patterns are compiled once: this takes longer than all other checks of an object together.
fn compiled(pattern: &str) -> Option<Regex> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock();
    match known.get(pattern) {
        Some(regex) => regex.clone(),
        None => known
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).ok())
            .clone(),
    }
}

/// The range of a number.
pub(super) fn bounds(node: &Value, number: f64, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limit = |key: &str| node.get(key).and_then(Value::as_f64);
    let exclusive = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or_default();
    let mut broken = |detail: String| {
        errors.push(FieldError::invalid(
            path,
            value,
            format!("{path} in body should be {detail}"),
        ));
    };
    if let Some(min) = limit("minimum") {
        match exclusive("exclusiveMinimum") {
            true if number <= min => broken(format!("greater than {min}")),
            false if number < min => broken(format!("greater than or equal to {min}")),
            _ => {}
        }
    }
    if let Some(max) = limit("maximum") {
        match exclusive("exclusiveMaximum") {
            true if number >= max => broken(format!("less than {max}")),
            false if number > max => broken(format!("less than or equal to {max}")),
            _ => {}
        }
    }
    if let Some(step) = limit("multipleOf").filter(|step| *step != 0.0 && (number / step).fract() != 0.0) {
        broken(format!("a multiple of {step}"));
    }
}

/// The number of items or properties.
pub(super) fn limits(
    node: &Value,
    [min, max]: [&str; 2],
    count: usize,
    what: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let number = |key: &str| node.get(key).and_then(Value::as_u64);
    let count = count as u64;
    if let Some(max) = number(max).filter(|max| count > *max) {
        let detail = format!("must have at most {max} item{}", if max == 1 { "" } else { "s" });
        errors.push(FieldError::new(Fault::TooMany, path, Some(json!(count)), detail));
    }
    if let Some(min) = number(min).filter(|min| count < *min) {
        let detail = format!("{path} in body should have at least {min} {what}");
        errors.push(FieldError::invalid(path, &json!(count), detail));
    }
}
