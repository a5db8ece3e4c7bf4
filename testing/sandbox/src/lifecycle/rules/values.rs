//! Validation of common types of values.

use serde_json::{Value, json};

use super::super::names;
use crate::error::{Fault, FieldError};
use crate::store::text;

/// The items of a list, with their paths: `items(object, "spec.rules", "/spec/rules")`.
pub(super) fn items<'v>(
    object: &'v Value,
    at: &str,
    pointer: &str,
) -> impl Iterator<Item = (String, &'v Value)> + use<'v> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    let at = at.to_owned();
    let items = list.into_iter().flatten().enumerate();
    items.map(move |(index, item)| (format!("{at}[{index}]"), item))
}

/// One of several values, in the order of the original's message.
pub(super) fn one_of(at: &str, word: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    if known.contains(&word) {
        return;
    }
    let known: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
    let detail = format!("supported values: {}", known.join(", "));
    errors.push(FieldError::new(
        Fault::NotSupported,
        at,
        Some(json!(word)),
        detail,
    ));
}

/// A DNS subdomain, such as the name of a host or of a class.
pub(super) fn subdomain(at: impl Into<String>, name: &str, errors: &mut Vec<FieldError>) {
    if let Some(detail) = names::subdomain_problem(name) {
        errors.push(FieldError::invalid(at, &json!(name), detail));
    }
}

/// The number of a port.
pub(super) fn port(at: &str, port: &Value, errors: &mut Vec<FieldError>) {
    if !port.as_i64().is_some_and(|port| (1..=65535).contains(&port)) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(at, port, detail));
    }
}

/// The name of a container port.
pub(super) fn port_name(at: &str, name: &str, errors: &mut Vec<FieldError>) {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let problems = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            !name.chars().all(known),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !name.contains(|c: char| c.is_ascii_alphabetic()),
            "must contain at least one letter (a-z)",
        ),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (
            name.starts_with('-') || name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    for (_, detail) in problems.into_iter().filter(|(wrong, _)| *wrong) {
        errors.push(FieldError::invalid(at, &json!(name), detail));
    }
}

/// A number or a percentage.
pub(super) fn int_or_percent(at: &str, value: &Value, errors: &mut Vec<FieldError>) {
    match value {
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            errors.push(FieldError::invalid(
                at,
                value,
                "must be greater than or equal to 0",
            ));
        }
        Value::String(text) if percent(text).is_none() => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(FieldError::invalid(at, value, detail));
        }
        _ => {}
    }
}

/// At most 100 percent.
pub(super) fn at_most_all(at: &str, value: &Value, errors: &mut Vec<FieldError>) {
    if value
        .as_str()
        .and_then(percent)
        .is_some_and(|percent| percent > 100)
    {
        errors.push(FieldError::invalid(at, value, "must not be greater than 100%"));
    }
}

/// The number before the percent sign.
pub(super) fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// A label selector.
pub(super) fn selector(at: &str, selector: &Value, errors: &mut Vec<FieldError>) {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, _) in labels.into_iter().flatten() {
        names::check_key(key, &format!("{at}.matchLabels"), errors);
    }
    for (at, expression) in items(selector, &format!("{at}.matchExpressions"), "/matchExpressions") {
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.is_some_and(|values| !values.is_empty());
        match text(expression, "/operator") {
            "In" | "NotIn" if !values => errors.push(FieldError::required(
                format!("{at}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if values => errors.push(FieldError::forbidden(
                format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{at}.operator"),
                &json!(other),
                "not a valid selector operator",
            )),
        }
        names::check_key(text(expression, "/key"), &format!("{at}.key"), errors);
    }
}
