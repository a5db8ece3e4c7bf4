//! The manifest's JSON schema, for editors and CI.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;

use super::types::Manifest;

/// A JSON schema (draft 2020-12) of the manifest. Unknown keys are errors, as in strict mode.
pub fn json_schema() -> serde_json::Value {
    let mut schema = SchemaGenerator::new(SchemaSettings::draft2020_12())
        .into_root_schema_for::<Manifest>()
        .to_value();
    close(&mut schema);
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

/// Disallows additional properties in every object that has fixed properties.
fn close(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(object) => {
            object.retain(|keyword, _| !CRD_ONLY.contains(&keyword.as_str()));
            if object.get("properties").is_some_and(serde_json::Value::is_object) {
                object.entry("additionalProperties").or_insert(false.into());
            }
            object.values_mut().for_each(close);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
