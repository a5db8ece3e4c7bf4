//! Reads an object of a built-in kind as the original's Go types do: wrong types are rejected, nulls are dropped,
//! quantities and times get their canonical form, and non-pointer structs always exist.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::prune::join;
use super::quantity;
use super::{Schema, Shape};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";

/// Converts the object to the stored format. The error is the message of the original's decoder.
pub(crate) fn typed(schema: Schema<'_>, value: &mut Value) -> Result<(), String> {
    walk(schema, value, "", "")
}

fn walk(schema: Schema<'_>, value: &mut Value, path: &str, owner: &str) -> Result<(), String> {
    match schema.shape() {
        Shape::Any => Ok(()),
        Shape::Scalar => scalar(schema, value, path, owner),
        Shape::List => {
            let Value::Array(items) = value else {
                return Err(mismatch(schema, value, path, owner));
            };
            let Some(element) = schema.items() else {
                return Ok(());
            };
            items
                .iter_mut()
                .try_for_each(|item| walk(element, item, path, owner))
        }
        Shape::Object => {
            if !value.is_object() {
                return Err(mismatch(schema, value, path, owner));
            }
            let Value::Object(map) = value else { return Ok(()) };
            if schema.values().is_some() {
                sort(map);
            }
            let required: Vec<&str> = schema.required().collect();
            // In a map of strings a null is an empty string.
            if schema
                .values()
                .is_some_and(|values| values.json_type() == "string" && values.type_name().is_none())
            {
                map.values_mut()
                    .filter(|child| child.is_null())
                    .for_each(|child| *child = json!(""));
            }
            map.retain(|key, child| {
                !child.is_null() && (required.contains(&key.as_str()) || !vanishes(schema, key, child))
            });
            let owner = if schema.type_name().is_some() {
                schema.short_name()
            } else {
                owner
            };
            for (key, child) in map.iter_mut() {
                if let Some(field) = schema.field(key) {
                    walk(field, child, &join(path, key), owner)?;
                } else if let Some(values) = schema.values() {
                    // The original reports the map, not the key.
                    walk(values, child, path, owner)?;
                }
            }
            // Non-pointer structs are written even if they are empty.
            for (key, field) in schema.fields() {
                if field.default() == Some(&json!({})) && !map.contains_key(key) {
                    let mut empty = json!({});
                    walk(field, &mut empty, &join(path, key), owner)?;
                    map.insert(key.to_owned(), empty);
                }
            }
            Ok(())
        }
    }
}

/// Go writes a map in the order of its keys.
pub(crate) fn sort(map: &mut Map<String, Value>) {
    if !map.keys().is_sorted() {
        map.sort_keys();
    }
}

/// Adds what the original writes for an empty value: structs, and nulls for required lists.
pub(crate) fn zero(schema: Schema<'_>, value: &mut Value) {
    let Some(map) = value.as_object_mut() else { return };
    let required: Vec<&str> = schema.required().collect();
    for (key, field) in schema
        .fields()
        .filter(|(key, _)| *key != "kind" && *key != "apiVersion")
    {
        if field.default() == Some(&json!({})) {
            let mut inner = json!({});
            zero(field, &mut inner);
            map.insert(key.to_owned(), inner);
        } else if required.contains(&key) && field.shape() == Shape::List {
            map.insert(key.to_owned(), Value::Null);
        }
    }
}

/// Empty lists and maps are omitted; empty structs are not.
fn vanishes(schema: Schema<'_>, key: &str, value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => {
            map.is_empty() && schema.field(key).is_some_and(|field| field.values().is_some())
        }
        _ => false,
    }
}

fn scalar(schema: Schema<'_>, value: &mut Value, path: &str, owner: &str) -> Result<(), String> {
    if schema.type_name() == Some(QUANTITY) {
        let text = match &*value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(mismatch(schema, value, path, owner)),
        };
        *value = json!(quantity::canonical(&text).ok_or_else(|| {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned()
        })?);
        return Ok(());
    }
    if schema.type_name() == Some(TIME) {
        if let Some(time) = value
            .as_str()
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
        {
            *value = json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        return Ok(());
    }
    let fits = match schema.json_type() {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    };
    if let (true, Some(text), "byte") = (fits, value.as_str(), schema.format()) {
        return check_base64(text);
    }
    if fits {
        Ok(())
    } else {
        Err(mismatch(schema, value, path, owner))
    }
}

fn check_base64(text: &str) -> Result<(), String> {
    if STANDARD.decode(text).is_ok() {
        return Ok(());
    }
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=');
    let at = text.find(|letter| !is_letter(letter)).unwrap_or(text.len());
    Err(format!("illegal base64 data at input byte {at}"))
}

fn mismatch(schema: Schema<'_>, value: &Value, path: &str, owner: &str) -> String {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if schema.json_type() == "integer" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!(
        "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {}",
        go_type(schema)
    )
}

/// The Go type of a field, as decoding errors show it.
fn go_type(schema: Schema<'_>) -> String {
    match (schema.type_name(), schema.json_type(), schema.format()) {
        (Some(_), ..) => {
            let package = schema
                .type_name()
                .unwrap_or_default()
                .rsplit('.')
                .nth(1)
                .unwrap_or_default();
            format!("{package}.{}", schema.short_name())
        }
        (None, "integer", "") => "int64".to_owned(),
        (None, "integer", format) => format.to_owned(),
        (None, "string", "byte") => "[]uint8".to_owned(),
        (None, "boolean", _) => "bool".to_owned(),
        (None, "number", _) => "float64".to_owned(),
        (None, "array", _) => format!("[]{}", schema.items().map(go_type).unwrap_or_default()),
        (None, "object", _) => format!("map[string]{}", schema.values().map(go_type).unwrap_or_default()),
        (None, other, _) => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_read_as_its_go_type() {
        let schema = Schema::of_kind("apps", "v1", "Deployment").unwrap();
        let mut value = json!({"metadata": {"name": "a", "labels": null}, "spec": {
            "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]}}}});
        typed(schema, &mut value).unwrap();
        assert_eq!(value["spec"]["strategy"], json!({}));
        assert_eq!(value["status"], json!({}));
        assert_eq!(value["metadata"], json!({"name": "a"}));
        let limits = &value["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(limits, &json!({"cpu": "500m", "memory": "1Gi"}));

        let mut map = json!({"metadata": {"labels": {"b": "", "a": "", "c": ""}}});
        typed(schema, &mut map).unwrap();
        let labels: Vec<&String> = map["metadata"]["labels"].as_object().unwrap().keys().collect();
        assert_eq!(labels, ["a", "b", "c"]);

        let mut wrong = json!({"spec": {"replicas": "two"}});
        let error = typed(schema, &mut wrong).unwrap_err();
        assert_eq!(
            error,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
    }
}
