//! Tables: what `kubectl get` prints. The columns of built-in kinds are the original's; those of custom
//! resources come from their definition.

mod age;
mod cells;

use jsonpath_rust::JsonPath as _;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::data;
use crate::resource::Resource;
use crate::store::metadata_only;

/// Objects as a table. `include` says what each row carries: nothing, metadata or the whole object.
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
            let carried = match include {
                "None" => Value::Null,
                "Object" => (*object).clone(),
                _ => metadata_only(object),
            };
            json!({"cells": cells, "object": carried})
        })
        .collect();
    let definitions: Vec<&Value> = columns.iter().map(|column| &column.definition).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
        "columnDefinitions": definitions, "rows": rows,
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
    let found = object
        .query(&format!("${}", column.path.replace("\\.", ".")))
        .unwrap_or_default();
    let Some(value) = found.first().copied() else {
        return Value::Null;
    };
    match (column.definition["type"].as_str().unwrap_or_default(), value) {
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
