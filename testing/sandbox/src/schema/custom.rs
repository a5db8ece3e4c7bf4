//! A version of a custom resource: conversion of its objects to the stored format, and validation.

use std::sync::LazyLock;

use kube_cel::{CompiledSchema, RootContext, Validator, compile_schema};
use regex::Regex;
use serde_json::{Value, json};

use super::Schema;
use super::paths::{at, is_unchanged, shown_path};
use super::{embedded, lists, prune, validate};
use crate::error::{Fault, FieldError};
use crate::resource::Resource;
use crate::store::text;

static OLD_SELF: LazyLock<Regex> = LazyLock::new(|| {
    // A constant, which the tests cover.
    Regex::new(r"\boldSelf\b").unwrap_or_else(|_| unreachable!())
});

const OBJECT_META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// What is special about a custom resource's version.
#[derive(Debug)]
pub(crate) struct Custom {
    /// The schema of the whole object, metadata included.
    pub(crate) schema: Value,
    /// The schema as the CRD declares it: for `OpenAPI`, and for defaults and rules, which do not include the metadata.
    pub(crate) declared: Value,
    pub(crate) list_kind: Option<String>,
    pub(crate) columns: Vec<Value>,
    pub(crate) selectable: Vec<String>,
    pub(crate) scale: Option<Value>,
    rules: CompiledSchema,
    has_rules: bool,
    /// Whether the schema can contain embedded resources: only then are objects searched for them.
    pub(crate) has_embedded: bool,
    /// The schema of the storage version, if it is another one: it also prunes.
    stored: Option<Value>,
    /// Objects with an older revision were written with another schema: they are pruned and get defaults when they are
    /// read.
    pub(crate) since: u64,
    /// Rules that report a field below their own.
    pointing: Vec<String>,
}

impl Custom {
    /// From a version of a CRD.
    pub(super) fn new(spec: &Value, version: &Value) -> Self {
        let declared = version
            .pointer("/schema/openAPIV3Schema")
            .cloned()
            .unwrap_or_else(|| json!({"type": "object"}));
        let list = |pointer: &str| {
            version
                .pointer(pointer)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let mut pointing = Vec::new();
        let mut compiled = declared.clone();
        prepare_rules(&mut compiled, &mut pointing);
        Self {
            rules: compile_schema(&compiled),
            has_rules: mentions(&declared, "x-kubernetes-validations"),
            has_embedded: mentions(&declared, "x-kubernetes-embedded-resource"),
            pointing,
            list_kind: spec
                .pointer("/names/listKind")
                .and_then(Value::as_str)
                .map(str::to_owned),
            columns: list("/additionalPrinterColumns"),
            selectable: list("/selectableFields")
                .iter()
                .map(|field| text(field, "/jsonPath").trim_start_matches('.').to_owned())
                .collect(),
            scale: version.pointer("/subresources/scale").cloned(),
            schema: whole_schema(version),
            stored: stored_schema(spec, version),
            since: 0,
            declared,
        }
    }

    /// Converts an object to the stored format: pruned, without nulls, with defaults. Returns the paths of the fields
    /// that are not in the schema.
    pub(crate) fn normalize(&self, value: &mut Value) -> Vec<String> {
        let root = Schema::custom(&self.schema);
        whole_numbers(value);
        let unknown = prune::unknown_fields(root, value);
        prune::nulls(root, value);
        loop {
            // A default that is an object has defaults itself.
            let defaulted = kube_cel::apply_defaults(&self.declared, value);
            if defaulted == *value {
                return unknown;
            }
            *value = defaulted;
        }
    }

    /// Removes fields that the storage version does not have.
    pub(crate) fn prune_for_storage(&self, value: &mut Value) {
        if let Some(stored) = &self.stored {
            prune::unknown_fields(Schema::custom(stored), value);
        }
    }

    /// All validation errors of the object, including rules that compare it with its previous state.
    pub(crate) fn check(&self, resource: &Resource, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let root = Schema::custom(&self.declared);
        // Errors that existed before in unchanged fields are ignored.
        let fresh = |error: &FieldError| old.is_none_or(|old| !is_unchanged(error, old, value));
        let mut errors: Vec<FieldError> = validate::check(root, value, "")
            .into_iter()
            .filter(fresh)
            .collect();
        for error in &mut errors {
            error.detail = error.detail.trim_start().to_owned();
        }
        let blocking = errors.iter().any(|error| {
            matches!(
                error.fault,
                Fault::Required | Fault::TypeInvalid | Fault::TooLong | Fault::TooMany | Fault::NotSupported
            )
        });
        // If a list contains duplicates, the rules are not evaluated.
        let twice = lists::check(root, value, "");
        if !twice.is_empty() && old.is_none_or(|old| lists::check(root, old, "").is_empty()) {
            errors.extend(twice);
        }
        if self.has_embedded {
            errors.extend(embedded::check(resource, root, value).into_iter().filter(fresh));
        }
        if !blocking {
            errors.extend(self.check_rules(resource, value, old).into_iter().filter(fresh));
        } else if self.has_rules {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            errors.push(FieldError::new(
                Fault::Invalid,
                "<nil>",
                Some(Value::Null),
                detail,
            ));
        }
        errors
    }

    fn check_rules(&self, resource: &Resource, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if !self.has_rules {
            return Vec::new();
        }
        let context = RootContext {
            api_version: resource.api_version(),
            api_group: resource.group.clone(),
            kind: resource.kind.clone(),
        };
        let Err(found) =
            Validator::new().validate_compiled_with_context(&self.rules, value, old, Some(&context))
        else {
            return Vec::new();
        };
        found
            .into_vec()
            .into_iter()
            .map(|error| {
                let fault = match error.reason.as_deref() {
                    Some("FieldValueForbidden") => Fault::Forbidden,
                    Some("FieldValueRequired") => Fault::Required,
                    Some("FieldValueDuplicate") => Fault::Duplicate,
                    _ => Fault::Invalid,
                };
                // Objects and lists are too long to show.
                let shown = Some(at(value, &error.field_path))
                    .filter(|value| {
                        !matches!(fault, Fault::Forbidden | Fault::Required)
                            && !self.pointing.contains(&error.rule)
                            && !value.is_object()
                            && !value.is_array()
                    })
                    .cloned();
                let path = if error.field_path.is_empty() {
                    "<nil>".to_owned()
                } else {
                    shown_path(Schema::custom(&self.declared), &error.field_path)
                };
                FieldError::new(fault, path, shown, error.message)
            })
            .collect()
    }
}

/// Objects keep the version that they were written in. Reading another version renames it and prunes the object.
/// Defaults are those of the storage version.
pub(crate) fn convert(resource: &Resource, value: &Value) -> Value {
    let mut converted = value.clone();
    converted["apiVersion"] = json!(resource.api_version());
    match &resource.custom {
        Some(custom) if custom.stored.is_none() => drop(custom.normalize(&mut converted)),
        Some(custom) => drop(prune::unknown_fields(
            Schema::custom(&custom.schema),
            &mut converted,
        )),
        None => {}
    }
    converted
}

fn stored_schema(spec: &Value, version: &Value) -> Option<Value> {
    let versions = spec.get("versions")?.as_array()?;
    let stored = versions
        .iter()
        .find(|version| version.get("storage") == Some(&json!(true)))?;
    (text(stored, "/name") != text(version, "/name")).then(|| whole_schema(stored))
}

/// The schema of a version, with that of the metadata.
fn whole_schema(version: &Value) -> Value {
    let declared = version.pointer("/schema/openAPIV3Schema").cloned();
    let mut schema = declared.unwrap_or_else(|| json!({"type": "object"}));
    schema["properties"]["apiVersion"] = json!({"type": "string"});
    schema["properties"]["kind"] = json!({"type": "string"});
    schema["properties"]["metadata"] = json!({"$ref": OBJECT_META});
    schema
}

/// Converts rules to the form that the library evaluates as the original does: it passes the previous value of a rule
/// with `optionalOldSelf` as a plain value or null. Collects the rules with a `fieldPath`.
fn prepare_rules(schema: &mut Value, pointing: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            let rules = map
                .get_mut("x-kubernetes-validations")
                .and_then(Value::as_array_mut);
            for rule in rules.into_iter().flatten() {
                if rule.get("optionalOldSelf") == Some(&json!(true)) {
                    let optional = "(oldSelf == null ? optional.none() : optional.of(oldSelf))";
                    rule["rule"] = json!(OLD_SELF.replace_all(text(rule, "/rule"), optional));
                }
                if rule.get("fieldPath").is_some() {
                    pointing.push(text(rule, "/rule").to_owned());
                }
            }
            map.values_mut().for_each(|child| prepare_rules(child, pointing));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prepare_rules(item, pointing)),
        _ => {}
    }
}

/// Writes numbers without a fraction as integers.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            // Prints all digits of the integer.
            let text = number
                .as_f64()
                .filter(|float| float.fract() == 0.0)
                .map(|float| format!("{float:.0}"));
            if let Some(whole) = text.and_then(|text| text.parse::<i64>().ok()) {
                *value = json!(whole);
            }
        }
        _ => {}
    }
}

fn mentions(schema: &Value, key: &str) -> bool {
    match schema {
        Value::Object(map) => map.contains_key(key) || map.values().any(|child| mentions(child, key)),
        Value::Array(items) => items.iter().any(|item| mentions(item, key)),
        _ => false,
    }
}
