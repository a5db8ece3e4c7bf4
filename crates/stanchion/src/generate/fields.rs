//! The reference page of a kind: all its fields, from the schema of its CRD.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};

use super::table::{MADE, table};

pub(super) fn page(crd: &CustomResourceDefinition) -> String {
    let mut text = format!("# {}\n\n{MADE}", crd.spec.names.kind);
    for version in &crd.spec.versions {
        let schema = version.schema.as_ref();
        if let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_ref()) {
            text.push_str(&heading(crd, version, schema));
            for (part, fields) in schema.properties.iter().flatten() {
                text.push_str(&section(part, fields));
            }
        }
    }
    text
}

fn heading(
    crd: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
    schema: &JSONSchemaProps,
) -> String {
    let names = &crd.spec.names;
    let called: Vec<String> = std::iter::once(&names.plural)
        .chain(names.short_names.iter().flatten())
        .map(|name| format!("`{name}`"))
        .collect();
    format!(
        "\n{}\n\n`apiVersion: {}/{}`, {}; kubectl knows it as {}.\n",
        schema.description.as_deref().unwrap_or_default(),
        crd.spec.group,
        version.name,
        crd.spec.scope.to_lowercase(),
        called.join(", ")
    )
}

fn section(part: &str, fields: &JSONSchemaProps) -> String {
    let mut found = Found::default();
    found.visit(part, fields);
    let mut text = format!(
        "\n## {part}\n\n{}",
        table(["field", "type", "default", "meaning"], &found.rows)
    );
    if !found.rules.is_empty() {
        let rules = table(["where", "rule"], &found.rules);
        let _ = write!(text, "\nValidation rules:\n\n{rules}");
    }
    text
}

/// The fields below one, in the order of the schema.
#[derive(Default)]
struct Found {
    rows: Vec<[String; 4]>,
    rules: Vec<[String; 2]>,
}

impl Found {
    fn visit(&mut self, path: &str, schema: &JSONSchemaProps) {
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let said = rule.message.clone().unwrap_or_else(|| format!("`{}`", rule.rule));
            self.rules.push([format!("`{path}`"), said]);
        }
        let required = schema.required.clone().unwrap_or_default();
        for (name, field) in schema.properties.iter().flatten() {
            let path = format!("{path}.{name}");
            let default = field.default.as_ref().map(|default| format!("`{}`", default.0));
            let missing = if required.contains(name) { "required" } else { "" };
            self.rows.push([
                format!("`{path}`"),
                kind(field),
                default.unwrap_or_else(|| missing.into()),
                field.description.clone().unwrap_or_default(),
            ]);
            self.visit(&path, field);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            self.visit(&format!("{path}[]"), items);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
            self.visit(&format!("{path}.*"), values);
        }
    }
}

/// The type of a field, in a few words.
fn kind(schema: &JSONSchemaProps) -> String {
    if let Some(values) = &schema.enum_ {
        let values: Vec<String> = values.iter().map(|value| format!("`{}`", value.0)).collect();
        return values.join(", ").replace('"', "");
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".into();
    }
    let name = match (&schema.items, &schema.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(items)), _) => format!("list of {}", kind(items)),
        (_, Some(JSONSchemaPropsOrBool::Schema(values))) => format!("map of {}", kind(values)),
        _ => schema.type_.clone().unwrap_or_else(|| "any".into()),
    };
    let bounds = [
        between(schema.minimum, schema.maximum, ""),
        between(schema.min_length, schema.max_length, " characters"),
        between(schema.min_items, schema.max_items, " items"),
        schema.pattern.as_ref().map(|pattern| format!("`{pattern}`")),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    if bounds.is_empty() {
        name
    } else {
        format!("{name} ({})", bounds.join(", "))
    }
}

fn between<T: std::fmt::Display>(least: Option<T>, most: Option<T>, unit: &str) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_rules_and_bounds_are_all_told() {
        let schema: JSONSchemaProps = serde_json::from_value(json!({
            "type": "object",
            "required": ["port"],
            "x-kubernetes-validations": [{ "rule": "self.a == self.b", "message": "a must be b" }],
            "properties": {
                "port": { "type": "integer", "minimum": 1.0, "maximum": 65535.0, "description": "Port." },
                "mode": { "type": "string", "enum": ["on", "off"], "default": "on" },
                "names": { "type": "array", "maxItems": 4, "items": {
                    "type": "object", "properties": { "name": { "type": "string", "minLength": 1 } }
                } }
            }
        }))
        .unwrap();
        assert_eq!(
            section("spec", &schema),
            "\n## spec\n\n\
             | field | type | default | meaning |\n\
             | --- | --- | --- | --- |\n\
             | `spec.mode` | `on`, `off` | `\"on\"` |  |\n\
             | `spec.names` | list of object (at most 4 items) |  |  |\n\
             | `spec.names[].name` | string (at least 1 characters) |  |  |\n\
             | `spec.port` | integer (1 to 65535) | required | Port. |\n\
             \nValidation rules:\n\n\
             | where | rule |\n\
             | --- | --- |\n\
             | `spec` | a must be b |\n"
        );
    }
}
