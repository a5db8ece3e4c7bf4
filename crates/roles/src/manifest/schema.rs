//! The manifest's JSON schema, for editors and CI.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::types::Manifest;

/// A JSON schema (draft 2020-12) of the manifest. Unknown keys are errors, as in strict mode.
pub fn json_schema() -> Value {
    let mut schema = SchemaGenerator::new(SchemaSettings::draft2020_12())
        .into_root_schema_for::<Manifest>()
        .to_value();
    adapt(&mut schema);
    schema
}

/// What the types say only for a CRD: a file has no limits, and no API server that sets defaults or evaluates CEL.
const CRD_ONLY: [&str; 6] = [
    "default",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minLength",
    "x-kubernetes-validations",
];

/// Keywords whose value has the names of fields or types as keys.
const NAMED: [&str; 2] = ["$defs", "properties"];

/// Removes what is only for a CRD, and disallows additional properties in every object that has fixed properties.
fn adapt(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|keyword, _| !CRD_ONLY.contains(&keyword.as_str()));
            if object.get("properties").is_some_and(Value::is_object) {
                object.entry("additionalProperties").or_insert(false.into());
            }
            for (keyword, value) in object {
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values_mut().for_each(adapt);
                    }
                    other => adapt(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(adapt),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_for_the_crd_go_and_fields_of_the_same_name_stay() {
        let mut schema = json!({
            "properties": { "default": { "type": "string", "maxLength": 63, "default": "a" } },
            "$defs": { "maxItems": { "type": "array", "maxItems": 3 } },
            "x-kubernetes-validations": [{ "rule": "true" }],
        });
        adapt(&mut schema);
        let adapted = json!({
            "properties": { "default": { "type": "string" } },
            "$defs": { "maxItems": { "type": "array" } },
            "additionalProperties": false,
        });
        assert_eq!(schema, adapted);
    }
}
