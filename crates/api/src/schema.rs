//! What the derived schemas say that Kubernetes does not understand.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// Takes away what the API server would warn about with every `kubectl apply`.
pub(crate) fn tidy(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            tidy_schema(schema);
        }
    }
    crd
}

/// Gives objects that nobody has looked at yet a status: the API server shows it, and nobody has to write it.
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

/// `uint16` and the like are Rust's; the bounds beside them say the same. An optional enum lists `null` among its
/// values, which `nullable` says already, and which kubectl's own validation does not understand.
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
    /// The API server warns about formats that it does not know, and kubectl refuses a null among values.
    #[test]
    fn nothing_in_a_schema_is_unknown_to_kubernetes() {
        for crd in crate::crds() {
            let text = serde_json::to_string(&crd).unwrap();
            assert!(!text.contains("\"uint"), "{:?}", crd.metadata.name);
            assert!(!text.contains("null]"), "{:?}", crd.metadata.name);
        }
    }
}
