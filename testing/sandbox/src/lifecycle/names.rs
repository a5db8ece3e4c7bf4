//! The rules for names, labels and annotations.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::error::{Fault, FieldError};
use crate::resource::Resource;
use crate::store::text;

const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const STRICT_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const UNQUALIFIED: &str = "name is neither a standard finalizer name nor is it fully qualified";

fn whole(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

static PATTERNS: LazyLock<[Option<Regex>; 5]> =
    LazyLock::new(|| [SUBDOMAIN, LABEL, QUALIFIED, VALUE, STRICT_LABEL].map(whole));

/// The error of an invalid DNS label.
pub(crate) fn label_problem(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!matches(1, name)).then(|| LABEL_RULE.to_owned())
}

/// The error of an invalid DNS subdomain, which most names are.
pub(crate) fn subdomain_problem(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 bytes".to_owned());
    }
    (!matches(0, name)).then(|| SUBDOMAIN_RULE.to_owned())
}

/// Whether the text is a valid name of a kind or a version.
pub(crate) fn is_dns_1035_label(name: &str) -> bool {
    name.len() <= 63 && matches(4, name)
}

fn matches(index: usize, name: &str) -> bool {
    PATTERNS
        .get(index)
        .and_then(Option::as_ref)
        .is_some_and(|pattern| pattern.is_match(name))
}

/// The errors of an object's name.
pub(crate) fn check_name(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let name = text(object, "/metadata/name");
    let generate = text(object, "/metadata/generateName");
    if name.is_empty() {
        let detail = if generate.is_empty() {
            "name or generateName is required"
        } else {
            ""
        };
        return vec![FieldError::required("metadata.name", detail)];
    }
    // A prefix may end with a hyphen, a name may not.
    let prefix = generate.strip_suffix('-').map(|stem| format!("{stem}a"));
    let prefix = prefix.as_deref().unwrap_or(generate);
    let generate = Some(prefix)
        .filter(|prefix| !prefix.is_empty())
        .and_then(|prefix| problem(resource, prefix))
        .map(|detail| FieldError::invalid("metadata.generateName", &json!(generate), detail));
    let name =
        problem(resource, name).map(|detail| FieldError::invalid("metadata.name", &json!(name), detail));
    generate.into_iter().chain(name).collect()
}

fn problem(resource: &Resource, name: &str) -> Option<String> {
    let storage = &*resource.storage;
    if storage.starts_with("rbac.authorization.k8s.io/") || storage == "/events" {
        let bad = matches!(name, "." | "..") || name.contains(['/', '%']);
        let sign = if name.contains('/') { '/' } else { '%' };
        return bad.then(|| format!("may not contain '{sign}'"));
    }
    match storage {
        "/namespaces" | "/services" if name.contains('.') => Some("must not contain dots".to_owned()),
        "/namespaces" | "/services" => label_problem(name),
        _ => subdomain_problem(name),
    }
}

/// The errors of the finalizers in the spec of a namespace.
pub(crate) fn inner_finalizer_errors(namespace: &Value) -> Vec<FieldError> {
    let wrong = unqualified(namespace, "/spec/finalizers").into_iter();
    wrong
        .map(|(index, name)| FieldError::invalid(format!("spec.finalizers[{index}]"), name, UNQUALIFIED))
        .collect()
}

fn unqualified<'v>(object: &'v Value, pointer: &str) -> Vec<(usize, &'v Value)> {
    let finalizers = object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let standard = |name: &str| {
        name.contains('/')
            || matches!(name, "kubernetes" | "orphan" | "foregroundDeletion")
            || name == crate::schema::crd::CLEANUP
    };
    finalizers
        .enumerate()
        .filter(|(_, name)| !name.as_str().is_some_and(standard))
        .collect()
}

/// Custom resources may have any finalizer, with a warning.
pub(crate) fn finalizer_warnings(resource: &Resource, object: &Value) -> Vec<String> {
    if resource.custom.is_none() {
        return Vec::new();
    }
    unqualified(object, "/metadata/finalizers")
        .into_iter()
        .map(|(_, name)| format!("metadata.finalizers: {name}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"))
        .collect()
}

/// The errors of labels, annotations, finalizers and owners.
pub(crate) fn check_metadata(resource: &Resource, object: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let map = |key: &str| {
        object
            .get("metadata")
            .and_then(|m| m.get(key))
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    for (key, value) in map("labels") {
        check_key(key, &format!("{path}.labels"), &mut errors);
        check_label_value(value, &format!("{path}.labels"), &mut errors);
    }
    for (key, _) in map("annotations") {
        check_key(&key.to_lowercase(), &format!("{path}.annotations"), &mut errors);
    }
    let size: usize = map("annotations")
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if size > 262_144 {
        errors.push(FieldError::new(
            Fault::TooLong,
            format!("{path}.annotations"),
            None,
            "may not be more than 262144 bytes",
        ));
    }
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    for name in finalizers.into_iter().flatten().filter_map(Value::as_str) {
        check_key(name, &format!("{path}.finalizers"), &mut errors);
    }
    if resource.custom.is_none() {
        for (index, name) in unqualified(object, "/metadata/finalizers") {
            errors.push(FieldError::invalid(
                format!("{path}.finalizers[{index}]"),
                name,
                UNQUALIFIED,
            ));
        }
    }
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let at = format!("{path}.ownerReferences");
    errors.extend(two_controllers(object, &at));
    for owner in owners {
        for (key, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            let value = text(owner, &format!("/{key}"));
            // If the text is not a group and version, the version is empty.
            let versionless = key == "apiVersion" && (value.ends_with('/') || value.matches('/').count() > 1);
            if value.is_empty() || versionless {
                errors.push(FieldError::invalid(format!("{at}.{key}"), &json!(value), detail));
            }
        }
        if text(owner, "/kind") == "Event" && text(owner, "/apiVersion") == "v1" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(&at, &ordered(owner), detail));
        }
    }
    errors
}

/// The errors of a label's value.
pub(super) fn check_label_value(value: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let text = value.as_str().unwrap_or_default();
    if text.len() > 63 {
        errors.push(FieldError::invalid(field, value, "must be no more than 63 bytes"));
    }
    if !matches(3, text) {
        errors.push(FieldError::invalid(field, value, format!("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{VALUE}')")));
    }
}

/// An owner reference in the field order of the original.
fn ordered(owner: &Value) -> Value {
    let keys = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let fields = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), owner.get(key)?.clone())));
    Value::Object(fields.collect())
}

/// An object cannot have two controllers.
fn two_controllers(object: &Value, field: &str) -> Option<FieldError> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let mut controllers = owners.iter().filter(|owner| owner["controller"] == json!(true));
    let (one, other) = (controllers.next()?, controllers.next()?);
    let words = |owner: &Value| format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
    let detail = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
        words(one),
        words(other)
    );
    let shown: Value = owners.iter().map(ordered).collect();
    Some(FieldError::invalid(field, &shown, detail))
}

/// Whether the text is a valid label key; values use the same characters.
pub(crate) fn is_label_key(key: &str) -> bool {
    let mut errors = Vec::new();
    check_key(key, "", &mut errors);
    errors.is_empty()
}

/// The errors of a label key.
pub(super) fn check_key(key: &str, field: &str, errors: &mut Vec<FieldError>) {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let shown = json!(key);
    if let Some(prefix) = prefix
        && !matches(0, prefix)
    {
        errors.push(FieldError::invalid(
            field,
            &shown,
            format!("prefix part {SUBDOMAIN_RULE}"),
        ));
    }
    if name.is_empty() {
        errors.push(FieldError::invalid(field, &shown, "name part must be non-empty"));
    }
    if name.len() > 63 {
        errors.push(FieldError::invalid(
            field,
            &shown,
            "name part must be no more than 63 bytes",
        ));
    }
    if !matches(2, name) {
        errors.push(FieldError::invalid(field, &shown, "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"));
    }
}
