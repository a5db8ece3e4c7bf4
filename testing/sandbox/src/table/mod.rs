//! Tables: the output of `kubectl get`. The columns of built-in kinds are the original's; those of custom resources
//! come from their CRD.

mod age;
mod cells;

use jsonpath_rust::JsonPath as _;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::data;
use crate::resource::Resource;
use crate::store::metadata_only;

/// Objects as a table. `include` selects the content of a row's object: none, metadata or the whole object.
pub(crate) fn table(
    resource: &Resource,
    objects: &[&Value],
    meta: &Value,
    include: &str,
    clock: &Clock,
) -> Value {
    let columns = columns(resource);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns
                .iter()
                .map(|column| match &resource.custom {
                    Some(_) => custom_cell(column, object, clock),
                    None => cells::cell(resource, &column.definition["name"], object, clock),
                })
                .collect();
            json!({"cells": cells, "object": carried(object, include)})
        })
        .collect();
    let definitions: Vec<&Value> = columns.iter().map(|column| &column.definition).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// The object in a row.
fn carried(object: &Value, include: &str) -> Value {
    match include {
        "None" => Value::Null,
        "Object" => object.clone(),
        _ => metadata_only(object),
    }
}

/// A scale as a table, for kubectl's output of the subresource.
pub(crate) fn of_scale(scale: &Value, include: &str, clock: &Clock) -> Value {
    let described = |schema: &str, field: &str| {
        let schema = data::schemas().get(schema);
        schema.and_then(|schema| schema.pointer(&format!("/properties/{field}/description")))
    };
    let column = |name: &str, kind: &str, format: &str, description: Option<&Value>| json!({"name": name, "type": kind, "format": format, "description": description, "priority": 0});
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let age = age::since(crate::store::text(scale, "/metadata/creationTimestamp"), clock);
    let desired = scale.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": scale["metadata"]["resourceVersion"]},
        "columnDefinitions": [
            column("Name", "string", "", described(meta, "name")),
            column("Desired", "integer", "", described("io.k8s.api.autoscaling.v1.ScaleSpec", "replicas")),
            column("Available", "integer", "", described("io.k8s.api.autoscaling.v1.ScaleStatus", "replicas")),
            column("Age", "string", "", described(meta, "creationTimestamp")),
        ],
        "rows": [{
            "cells": [scale["metadata"]["name"], desired, scale["status"]["replicas"], age],
            "object": carried(scale, include),
        }],
    })
}

struct Column {
    definition: Value,
    path: String,
}

fn columns(resource: &Resource) -> Vec<Column> {
    let Some(custom) = &resource.custom else {
        let name = format!("{}/{}/{}", resource.group, resource.version, resource.plural);
        let known = data::table_columns(&name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        return known
            .map(|definition| Column {
                definition: definition.clone(),
                path: String::new(),
            })
            .collect();
    };
    let name = data::table_columns("/v1/configmaps")
        .and_then(|columns| columns.get(0))
        .cloned()
        .unwrap_or_default();
    let mut columns = vec![Column {
        definition: name,
        path: ".metadata.name".to_owned(),
    }];
    let text = |column: &Value, key: &str| {
        column
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let standard = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": data::schemas()
            .get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
            .and_then(|meta| meta.pointer("/properties/creationTimestamp/description")),
    })];
    let declared = if custom.columns.is_empty() {
        &standard[..]
    } else {
        &custom.columns
    };
    for column in declared {
        let mut description = text(column, "description");
        if description.is_empty() {
            description = format!(
                "Custom resource definition column (in JSONPath format): {}",
                text(column, "jsonPath")
            );
        }
        columns.push(Column {
            definition: json!({
                "name": text(column, "name"), "type": text(column, "type"), "format": text(column, "format"),
                "description": description, "priority": column.get("priority").cloned().unwrap_or(json!(0)),
            }),
            path: text(column, "jsonPath"),
        });
    }
    columns
}

fn custom_cell(column: &Column, object: &Value, clock: &Clock) -> Value {
    let found = object.query(&standard(&column.path)).unwrap_or_default();
    let Some(value) = found.first().copied() else {
        return Value::Null;
    };
    match (column.definition["type"].as_str().unwrap_or_default(), value) {
        ("date", Value::String(time)) if time.parse::<jiff::Timestamp>().is_err() => json!("<invalid>"),
        ("date", Value::String(time)) => json!(age::since(time, clock)),
        ("string", Value::String(_))
        | ("integer" | "number", Value::Number(_))
        | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::Null) => Value::Null,
        ("string", other) => json!(other.to_string()),
        ("integer", Value::String(text)) => text.parse::<i64>().map_or(Value::Null, |number| json!(number)),
        _ => Value::Null,
    }
}

/// Converts a path from kubectl's dialect to a standard one: names with special characters, which may contain escaped
/// dots, are quoted.
fn standard(path: &str) -> String {
    let mut written = String::from("$");
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        if let Some(name) = rest
            .strip_prefix('.')
            .filter(|name| !name.starts_with(['.', '[']))
        {
            let mut escaped = false;
            let end = name.find(|letter: char| {
                let ends = !escaped && matches!(letter, '.' | '[');
                escaped = letter == '\\';
                ends
            });
            let (name, after) = name.split_at(end.unwrap_or(name.len()));
            let plain = name
                .chars()
                .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '*'));
            if plain {
                written.extend([".", name]);
            } else {
                written.extend(["['", &name.replace('\\', ""), "']"]);
            }
            rest = after;
        } else {
            // Brackets are the same in both.
            let end = if letter == '[' {
                rest.find(']').map_or(rest.len(), |end| end + 1)
            } else {
                letter.len_utf8()
            };
            let (part, after) = rest.split_at(end);
            written.push_str(part);
            rest = after;
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::standard;

    #[test]
    fn paths_become_standard_ones() {
        for (path, wanted) in [
            (".spec.a", "$.spec.a"),
            (".spec.list[*].b", "$.spec.list[*].b"),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                r#"$.status.conditions[?(@.type=="Ready")].status"#,
            ),
            (
                r".metadata.labels.example\.com/x",
                "$.metadata.labels['example.com/x']",
            ),
            (".metadata.annotations.a-b", "$.metadata.annotations['a-b']"),
            (".spec..name", "$.spec..name"),
        ] {
            assert_eq!(standard(path), wanted);
        }
    }
}
