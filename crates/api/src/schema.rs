//! Common schemas of fields, and adjustments of the derived schemas to what Kubernetes accepts.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::{moment, names};

/// Adds bounds to the spec, and removes what makes the API server warn on every `kubectl apply`.
pub(crate) fn tidy(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            if let Some(spec) = schema.properties.as_mut().and_then(|root| root.get_mut("spec")) {
                bound(spec, "spec");
            }
            tidy_schema(schema);
        }
    }
    crd
}

/// Up to 64 names of PostgreSQL objects, each once.
pub(crate) fn set_of_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": { "type": "string", "minLength": 1, "maxLength": 63 },
        "x-kubernetes-list-type": "set",
    })
}

/// Gives new objects a default status. The API server shows it before the operator has written one.
pub(crate) fn unseen(mut crd: CustomResourceDefinition, status: &Value) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut();
        let root = schema.and_then(|schema| schema.open_api_v3_schema.as_mut());
        if let Some(field) = root
            .and_then(|root| root.properties.as_mut())
            .and_then(|properties| properties.get_mut("status"))
        {
            field.default = Some(JSON(status.clone()));
        }
    }
    crd
}

/// The largest integer that JSON numbers represent exactly.
const WHOLE: f64 = 9_007_199_254_740_991.0;

/// Limits numbers to the range of their type, and names to valid names.
fn bound(schema: &mut JSONSchemaProps, path: &str) {
    let range = match schema.format.as_deref() {
        Some("int32") => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
        Some("int64") => Some((-WHOLE, WHOLE)),
        Some("uint8") => Some((0.0, f64::from(u8::MAX))),
        Some("uint16") => Some((0.0, f64::from(u16::MAX))),
        Some("uint32") => Some((0.0, f64::from(u32::MAX))),
        Some("uint64" | "uint") => Some((0.0, WHOLE)),
        _ => None,
    };
    if let Some((least, most)) = range {
        schema.minimum = Some(schema.minimum.map_or(least, |own| own.max(least)));
        schema.maximum = Some(schema.maximum.map_or(most, |own| own.min(most)));
    }
    if schema.format.as_deref() == Some("date-time") {
        schema.pattern = Some(moment::PATTERN.into());
    }
    if let Some(kind) = names::kind_of(path).filter(|_| schema.type_.as_deref() == Some("string")) {
        let (pattern, longest) = kind.pattern();
        // An optional name may be the empty string.
        let empty = if schema.min_length.unwrap_or(0) == 0 {
            "|"
        } else {
            ""
        };
        schema.pattern = Some(format!("^({empty}{pattern})$"));
        schema.max_length = Some(schema.max_length.map_or(longest, |own| own.min(longest)));
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        bound(property, &format!("{path}.{name}"));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        bound(items, &format!("{path}[]"));
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        bound(values, &format!("{path}{{}}"));
    }
}

/// Removes formats such as `uint16`, which only Rust has: the bounds express them. Removes `null` from the values of an
/// optional enum: `nullable` expresses it, and kubectl's validation does not accept it.
fn tidy_schema(schema: &mut JSONSchemaProps) {
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    if schema
        .format
        .as_deref()
        .is_some_and(|format| format.starts_with("uint"))
    {
        schema.format = None;
    }
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        tidy_schema(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy_schema(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy_schema(values);
    }
}

#[cfg(test)]
mod tests {
    /// The API server warns about unknown formats, and kubectl rejects null among the values of an enum.
    #[test]
    fn nothing_in_a_schema_is_unknown_to_kubernetes() {
        for crd in crate::crds() {
            let text = serde_json::to_string(&crd).unwrap();
            assert!(!text.contains("\"uint"), "{:?}", crd.metadata.name);
            assert!(!text.contains("null]"), "{:?}", crd.metadata.name);
        }
    }
}
