//! Generates the manifest reference from the types, so that the documentation matches the parser.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::schema::json_schema;

/// The reference as Markdown.
pub fn reference() -> String {
    let schema = json_schema();
    let mut text = String::from(
        "# Manifest reference\n\n<!-- Made from the types in crates/manifest and crates/roles/src/manifest/types.rs; do not edit. -->\n\n\
         A manifest is one YAML document. Everything is optional unless it says *required*. Keys that are not listed here \
         are errors; `--lenient` turns them into warnings.\n",
    );
    let mut written = BTreeSet::new();
    let mut open = vec![("Top level".to_owned(), schema.clone())];
    while let Some((title, part)) = open.pop() {
        let mut below = section(&title, &part, &mut text);
        below.reverse();
        for name in below {
            if let Some(definition) = schema
                .pointer(&format!("/$defs/{name}"))
                .filter(|_| written.insert(name.clone()))
            {
                open.push((name, definition.clone()));
            }
        }
    }
    text
}

/// Writes one type; returns the types that it refers to, in order.
fn section(title: &str, schema: &Value, text: &mut String) -> Vec<String> {
    let _ = write!(text, "\n## {title}\n\n{}\n\n", sentence(schema));
    let mut below = vec![];
    if let Some(words) = words(schema) {
        let _ = writeln!(text, "One of: {words}.");
        return below;
    }
    text.push_str("| key | type | |\n|---|---|---|\n");
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        let must = if required.contains(&key.as_str()) {
            "*required* "
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "| `{key}` | {} | {must}{} |",
            type_of(field, &mut below),
            sentence(field)
        );
    }
    below
}

fn sentence(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .replace('\n', " ")
        .replace('|', "\\|")
}

/// The values of an enum, in any of the forms that schemars writes.
fn words(schema: &Value) -> Option<String> {
    let plain = schema["enum"]
        .as_array()
        .map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let described = schema["oneOf"].as_array().map(|variants| {
        let word = |variant: &'_ Value| variant["const"].as_str().map(str::to_owned);
        let more = |variant: &Value| {
            variant["enum"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        variants
            .iter()
            .flat_map(|variant| word(variant).into_iter().chain(more(variant)))
            .collect::<Vec<_>>()
    });
    let words: Vec<String> = plain
        .map(|words| words.into_iter().map(str::to_owned).collect())
        .or(described)?;
    Some(
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

fn type_of(field: &Value, below: &mut Vec<String>) -> String {
    if let Some(name) = field["$ref"]
        .as_str()
        .and_then(|path| path.strip_prefix("#/$defs/"))
    {
        below.push(name.to_owned());
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(some) = field["anyOf"]
        .as_array()
        .and_then(|variants| variants.iter().find(|v| v["type"] != "null"))
    {
        return type_of(some, below);
    }
    let name = match &field["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null")
            .unwrap_or("any"),
        _ => "any",
    };
    match name {
        "array" => format!("list of {}", type_of(&field["items"], below)),
        "object" => format!("map to {}", type_of(&field["additionalProperties"], below)),
        plain => plain.to_owned(),
    }
}
