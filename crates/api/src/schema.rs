//! What the derived schemas say that Kubernetes does not understand.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Takes away what the API server would warn about with every `kubectl apply`.
pub(crate) fn tidy(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            drop_unknown_formats(schema);
        }
    }
    crd
}

/// `uint16` and the like are Rust's; the bounds beside them say the same.
fn drop_unknown_formats(schema: &mut JSONSchemaProps) {
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
        drop_unknown_formats(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        drop_unknown_formats(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        drop_unknown_formats(values);
    }
}

#[cfg(test)]
mod tests {
    /// The API server warns about formats that it does not know.
    #[test]
    fn no_format_is_unknown_to_kubernetes() {
        for crd in crate::crds() {
            let text = serde_json::to_string(&crd).unwrap();
            assert!(!text.contains("\"uint"), "{:?}", crd.metadata.name);
        }
    }
}
