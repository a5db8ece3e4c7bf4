//! Rules that involve several fields of an object.

use serde_json::{Map, Value, json};

use crate::error::FieldError;
use crate::store::text;

/// The required keys of some types of Secrets.
const SECRET_KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
];

/// The keys that a type of Secret requires.
pub(super) fn secret(object: &Value, errors: &mut Vec<FieldError>) {
    let kind = text(object, "/type");
    let nothing = Map::new();
    let data = object.get("data").and_then(Value::as_object).unwrap_or(&nothing);
    let keys = SECRET_KEYS
        .iter()
        .filter(|(known, _)| *known == kind)
        .flat_map(|(_, keys)| *keys);
    for key in keys.filter(|key| !data.contains_key(**key)) {
        errors.push(FieldError::required(format!("data[{key}]"), ""));
    }
    if kind == "kubernetes.io/basic-auth" && !data.contains_key("username") && !data.contains_key("password")
    {
        errors.push(FieldError::required("data[username]", ""));
        errors.push(FieldError::required("data[password]", ""));
    }
    let account = "kubernetes.io/service-account.name";
    let annotations = object.pointer("/metadata/annotations");
    if kind == "kubernetes.io/service-account-token" && annotations.and_then(|all| all.get(account)).is_none()
    {
        errors.push(FieldError::required(
            format!("metadata.annotations[{account}]"),
            "",
        ));
    }
}

/// A key may be in only one of the two maps.
pub(super) fn config_map(object: &Value, errors: &mut Vec<FieldError>) {
    let binary = object.get("binaryData").and_then(Value::as_object);
    let data = object
        .get("data")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (key, _) in data.filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key))) {
        let detail = "duplicate of key present in binaryData";
        errors.push(FieldError::invalid(format!("data[{key}]"), &json!(key), detail));
    }
}

/// A schedule has five fields, or is a name. A field contains numbers, ranges or steps.
pub(super) fn schedule(schedule: &str) -> Option<FieldError> {
    const RANGES: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() || schedule.starts_with('@') || schedule.contains("TZ=") {
        return None;
    }
    let detail = if fields.len() == RANGES.len() {
        let mut parts = fields
            .iter()
            .zip(RANGES)
            .flat_map(|(field, range)| field.split(',').map(move |part| (part, range)));
        parts.find_map(|(part, range)| out_of_range(part, range))?
    } else {
        let (found, fields) = (fields.len(), fields.join(" "));
        format!("expected exactly 5 fields, found {found}: [{fields}]")
    };
    Some(FieldError::invalid("spec.schedule", &json!(schedule), detail))
}

/// The error of `5`, `1-5` or `1-5/2`; names of days and months, and `*`, are not checked.
fn out_of_range(part: &str, (least, most): (u32, u32)) -> Option<String> {
    let (range, _) = part.split_once('/').unwrap_or((part, ""));
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
    if from < least {
        Some(format!(
            "beginning of range ({from}) below minimum ({least}): {part}"
        ))
    } else if to > most {
        Some(format!("end of range ({to}) above maximum ({most}): {part}"))
    } else if from > to {
        Some(format!(
            "beginning of range ({from}) beyond end of range ({to}): {part}"
        ))
    } else {
        None
    }
}
