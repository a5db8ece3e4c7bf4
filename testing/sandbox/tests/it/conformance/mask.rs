//! Masks what differs between two runs of the same server: identities, revisions, times.

use regex::Regex;
use serde_json::{Map, Value, json};

/// Fields whose values always differ.
const FIELDS: [(&str, &str); 9] = [
    ("uid", "<uid>"),
    ("resourceVersion", "<version>"),
    ("creationTimestamp", "<time>"),
    ("time", "<time>"),
    ("deletionTimestamp", "<time>"),
    ("lastTransitionTime", "<time>"),
    ("continue", "<token>"),
    ("expirationTimestamp", "<time>"),
    ("token", "<token>"),
];

/// An answer without what is specific to the run: `own` contains texts and their replacements.
pub(crate) fn masked(mut answer: Value, ignored: &[String], own: &[(&str, &'static str)]) -> Value {
    for pointer in ignored {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match answer["body"].pointer_mut(parent) {
            Some(Value::Object(map)) => drop(map.shift_remove(&key.replace("~1", "/"))),
            Some(Value::Array(list)) => {
                if let Some(item) = list.get_mut(key.parse::<usize>().unwrap()) {
                    *item = Value::Null;
                }
            }
            _ => {}
        }
    }
    let own = own.iter().filter(|(text, _)| !text.is_empty());
    let own = own.map(|(text, masked)| (regex::escape(text), *masked));
    let texts = [
        (
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".to_owned(),
            "<uid>",
        ),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z".to_owned(), "<time>"),
    ];
    let texts: Vec<(Regex, &str)> = own
        .chain(texts)
        .map(|(from, to)| (Regex::new(&from).unwrap(), to))
        .collect();
    walk(&mut answer, &texts);
    unordered(&mut answer);
    if let Some(Value::Array(lines)) = answer.pointer_mut("/body/lines") {
        // Bookmarks come at any time, but the one that ends the initial events must be there.
        lines.retain(|line| {
            line["type"] != "BOOKMARK" || !line["object"]["metadata"]["annotations"].is_null()
        });
    }
    answer
}

/// The original iterates over maps in random order: lists of errors, warnings and rules are compared as sets.
fn unordered(answer: &mut Value) {
    let text = |value: &Value| value.to_string();
    for pointer in [
        "/body/details/causes",
        "/warnings",
        "/body/status/resourceRules",
        "/body/status/nonResourceRules",
    ] {
        if let Some(Value::Array(list)) = answer.pointer_mut(pointer) {
            list.sort_by_key(text);
        }
    }
    if let Some(Value::String(message)) = answer.pointer_mut("/body/message") {
        let (head, list) = message.split_once(": ").unwrap_or(("", message.as_str()));
        let trimmed = list.trim_matches(['[', ']']);
        let mut parts: Vec<&str> = trimmed.split([',', '\n']).map(str::trim).collect();
        let several = parts.len() > 1;
        parts.sort_unstable();
        if several {
            *message = format!("{head}: {}", parts.join(" | "))
                .replace('[', "")
                .replace(']', "");
        }
    }
}

fn walk(value: &mut Value, texts: &[(Regex, &str)]) {
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                match FIELDS.iter().find(|(field, _)| field == key) {
                    Some((_, masked)) if child.is_string() && child != "" => *child = json!(masked),
                    _ => walk(child, texts),
                }
            }
            let entries: Vec<(String, Value)> = map
                .iter()
                .map(|(key, child)| {
                    (
                        texts.iter().fold(key.clone(), |key, (from, to)| {
                            from.replace_all(&key, *to).into_owned()
                        }),
                        child.clone(),
                    )
                })
                .collect();
            *map = entries.into_iter().collect();
            map.sort_keys();
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                walk(item, texts);
            }
            if items.iter().all(|item| item["fieldsType"].is_string()) {
                // Managed fields are ordered by time, so their order is random.
                items.sort_by_key(|item| {
                    [
                        &item["operation"],
                        &item["manager"],
                        &item["subresource"],
                        &item["apiVersion"],
                    ]
                    .map(Value::to_string)
                });
            }
            if items
                .iter()
                .all(|item| item["type"].is_string() && item["status"].is_string())
            {
                // The order of conditions depends on the order of the controllers.
                items.sort_by_key(|item| item["type"].to_string());
            }
        }
        Value::String(text) => {
            *text = texts.iter().fold(text.clone(), |text, (from, to)| {
                from.replace_all(&text, *to).into_owned()
            });
        }
        _ => {}
    }
}

/// The value at a JSON pointer. A step into a list may be `key=value` to select an item, where the key may be a path
/// with dots; in a list of conditions it may be a condition's type.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut steps = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"));
    steps.try_fold(value, |value, step| match value {
        Value::Array(items) => match (step.parse::<usize>(), step.split_once('=')) {
            (Ok(index), _) => items.get(index),
            (_, Some((key, wanted))) => {
                let key = format!("/{}", key.replace('.', "/"));
                items
                    .iter()
                    .find(|item| item.pointer(&key).is_some_and(|found| found == wanted))
            }
            _ => items.iter().find(|item| item["type"] == *step),
        },
        value => value.get(step),
    })
}

/// All differences between two answers.
pub(crate) fn differences(path: &str, wanted: &Value, found: &Value, all: &mut Vec<String>) {
    match (wanted, found) {
        // An answer with another code differs everywhere: its content is enough.
        (Value::Object(a), Value::Object(b)) if a.contains_key("body") && a["code"] != b["code"] => {
            let words = |answer: &Map<String, Value>| {
                let said = answer["body"].get("message").unwrap_or(&answer["body"]);
                format!("{} {said}", answer["code"])
            };
            all.push(format!(
                "{path}:\n    original: {}\n    sandbox:  {}",
                words(a),
                words(b)
            ));
        }
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let missing = &Value::Null;
                let (left, right) = (a.get(key).unwrap_or(missing), b.get(key).unwrap_or(missing));
                if a.contains_key(key) == b.contains_key(key) {
                    differences(&format!("{path}/{key}"), left, right, all);
                } else {
                    let side = if a.contains_key(key) { "missing" } else { "extra" };
                    all.push(format!(
                        "{path}/{key}: {side}: {}",
                        if side == "missing" { left } else { right }
                    ));
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (left, right)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{index}"), left, right, all);
            }
        }
        (a, b) if a != b => all.push(format!("{path}:\n    original: {a}\n    sandbox:  {b}")),
        _ => {}
    }
}
