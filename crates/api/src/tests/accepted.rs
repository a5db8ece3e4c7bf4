//! Tests that the Rust types accept everything that the schemas accept. For each CRD the tests generate the boundary
//! values of every field and deserialize an object with each of them: an object that the API server stores and the
//! operator cannot read would be useless.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{
    GitlabInstance, GitlabProfile, GitlabVersionMap, PostgresInstance, PostgresPolicy, PostgresPolicyPlan,
    PostgresUser, SupabaseProject, names,
};

type Read = fn(Value) -> Result<(), String>;

fn read<K: DeserializeOwned>(value: Value) -> Result<(), String> {
    serde_json::from_value::<K>(value)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The deserializer of each kind.
const KINDS: &[(&str, Read)] = &[
    ("PostgresUser", read::<PostgresUser>),
    ("PostgresInstance", read::<PostgresInstance>),
    ("SupabaseProject", read::<SupabaseProject>),
    ("PostgresPolicy", read::<PostgresPolicy>),
    ("PostgresPolicyPlan", read::<PostgresPolicyPlan>),
    ("GitlabInstance", read::<GitlabInstance>),
    ("GitlabProfile", read::<GitlabProfile>),
    ("GitlabVersionMap", read::<GitlabVersionMap>),
];

/// The schema of each kind's spec.
fn specs() -> impl Iterator<Item = (String, JSONSchemaProps)> {
    crate::crds().into_iter().map(|crd| {
        let schema = crd.spec.versions[0].schema.clone().unwrap();
        let mut root = schema.open_api_v3_schema.unwrap().properties.unwrap();
        (crd.spec.names.kind, root.remove("spec").unwrap())
    })
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(items) => Some(items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

fn values(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(values) => Some(values),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

/// The smallest value that the schema accepts: only the required fields.
fn least(schema: &JSONSchemaProps) -> Value {
    if schema.type_.as_deref() == Some("object") {
        let required = schema.required.iter().flatten();
        let fields = schema.properties.as_ref();
        let field = |name: &String| Some((name.clone(), least(fields?.get(name)?)));
        return Value::Object(required.filter_map(field).collect());
    }
    boundaries(schema)
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("no value for {schema:?}"))
}

/// Values at the edge of what the schema accepts.
fn boundaries(schema: &JSONSchemaProps) -> Vec<Value> {
    let mut found = own_boundaries(schema);
    if schema.nullable == Some(true) {
        found.push(Value::Null);
    }
    found
}

fn own_boundaries(schema: &JSONSchemaProps) -> Vec<Value> {
    if let Some(values) = &schema.enum_ {
        return values.iter().map(|value| value.0.clone()).collect();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return vec![json!("1Gi"), json!(0), json!(-1), json!(i64::MAX), json!("x")];
    }
    match schema.type_.as_deref() {
        Some("boolean") => vec![json!(true), json!(false)],
        Some("integer") => {
            let (least, most) = (schema.minimum, schema.maximum);
            let ends = [
                least,
                most,
                least.map(|least| least + 1.0),
                most.map(|most| most - 1.0),
            ];
            ends.into_iter()
                .flatten()
                .map(|end| json!(format!("{end:.0}").parse::<i64>().unwrap()))
                .collect()
        }
        Some("string") => texts(schema),
        Some("array") => vec![json!([]), json!([least(items(schema).unwrap())])],
        Some("object") if schema.x_kubernetes_preserve_unknown_fields == Some(true) => anything(),
        Some("object") if values(schema).is_some() => {
            vec![json!({}), json!({ "key": least(values(schema).unwrap()) })]
        }
        Some("object") => vec![least(schema)],
        other => panic!("a schema of type {other:?}: {schema:?}"),
    }
}

fn texts(schema: &JSONSchemaProps) -> Vec<Value> {
    let pattern = schema
        .pattern
        .as_deref()
        .map(|pattern| Regex::new(pattern).unwrap());
    let (least, most) = (
        schema.min_length.unwrap_or(0),
        schema.max_length.unwrap_or(100_000),
    );
    let long = "a".repeat(usize::try_from(most.min(100_000)).unwrap());
    let times = [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59.999999999-23:59",
        "0000-01-01T00:00:00+23:59",
        "0001-01-01T00:00:00Z",
        "2024-02-29t23:59:60z",
        "1969-12-31T23:59:59.5Z",
    ];
    let others = [
        "a",
        "",
        "1h",
        "0s",
        "99999999h99999999h99999999h99999999h",
        "https://a",
        "{{ .x }}",
        "a b",
        "ä",
        "\u{1b}",
        "null",
        "5000000000",
        "*/5 * * * *",
        "16Gi",
        "1.2.3",
        "user@example.com",
        &long,
    ];
    let is_time = schema.format.as_deref() == Some("date-time");
    let candidates: Vec<&str> = if is_time { times.to_vec() } else { others.to_vec() };
    let fits = |text: &&str| {
        let length = i64::try_from(text.chars().count()).unwrap();
        (least..=most).contains(&length) && pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
    };
    let found: Vec<Value> = candidates
        .into_iter()
        .filter(fits)
        .map(|text| json!(text))
        .collect();
    assert!(!found.is_empty(), "no text for {schema:?}");
    found
}

/// Objects that a free-form field accepts, whatever its type is.
fn anything() -> Vec<Value> {
    let fields = [
        "nodeAffinity",
        "podAffinity",
        "runAsUser",
        "capabilities",
        "seccompProfile",
        "tolerationSeconds",
        "key",
        "effect",
        "maxSkew",
        "labelSelector",
        "podSelector",
        "namespaceSelector",
        "ipBlock",
        "fsGroup",
        "sysctls",
        "supplementalGroups",
        "values",
    ];
    let odd = [
        json!(5),
        json!("x"),
        json!([5]),
        json!({ "a": { "b": [1] } }),
        json!(true),
        json!(-1.5),
    ];
    let mut all = vec![json!({}), json!({ "a": { "b": [1, "x", null] } })];
    for field in fields {
        all.extend(odd.iter().map(|value| json!({ field: value })));
    }
    all
}

/// Calls `check` with every object that has the smallest value in each field and one boundary value, and the field's
/// path.
fn each(
    schema: &JSONSchemaProps,
    path: &str,
    wrap: &dyn Fn(Value) -> Value,
    check: &mut dyn FnMut(&str, Value),
) {
    for value in boundaries(schema) {
        check(path, wrap(value));
    }
    for (name, field) in schema.properties.iter().flatten() {
        let inside = |value: Value| {
            let mut object = least(schema);
            object[name.as_str()] = value;
            wrap(object)
        };
        each(field, &format!("{path}.{name}"), &inside, check);
    }
    if let Some(items) = items(schema) {
        each(items, &format!("{path}[]"), &|value| wrap(json!([value])), check);
    }
    if let Some(values) = values(schema) {
        each(
            values,
            &format!("{path}{{}}"),
            &|value| wrap(json!({ "key": value })),
            check,
        );
    }
}

#[test]
fn what_the_schemas_accept_the_types_accept() {
    let mut refused = Vec::new();
    let mut tried = 0;
    for (kind, schema) in specs() {
        let read = KINDS.iter().find(|(name, _)| *name == kind).unwrap().1;
        let mut check = |path: &str, spec: Value| {
            tried += 1;
            let shown: String = spec.to_string().chars().take(300).collect();
            let mut object = Map::new();
            object.insert("metadata".into(), json!({ "name": "a" }));
            object.insert("spec".into(), spec);
            if let Err(error) = read(object.into()) {
                refused.push(format!("{kind} {path}: {error}\n    {shown}"));
            }
        };
        each(&schema, "spec", &|value| value, &mut check);
    }
    assert!(tried > 10_000, "{tried}");
    assert!(
        refused.is_empty(),
        "{} of {tried}:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

/// Every field of every spec, with its path.
fn fields() -> Vec<(String, JSONSchemaProps)> {
    fn walk(schema: &JSONSchemaProps, path: &str, all: &mut Vec<(String, JSONSchemaProps)>) {
        all.push((path.into(), schema.clone()));
        for (name, field) in schema.properties.iter().flatten() {
            walk(field, &format!("{path}.{name}"), all);
        }
        if let Some(items) = items(schema) {
            walk(items, &format!("{path}[]"), all);
        }
        if let Some(values) = values(schema) {
            walk(values, &format!("{path}{{}}"), all);
        }
    }
    let mut all = Vec::new();
    for (kind, schema) in specs() {
        let mut of_kind = Vec::new();
        walk(&schema, "spec", &mut of_kind);
        all.extend(
            of_kind
                .into_iter()
                .map(|(path, schema)| (format!("{kind} {path}"), schema)),
        );
    }
    all
}

#[test]
fn every_number_has_bounds() {
    for (path, schema) in fields() {
        let is_number = matches!(schema.type_.as_deref(), Some("integer" | "number"));
        assert!(
            !is_number || (schema.minimum.is_some() && schema.maximum.is_some()),
            "{path}"
        );
    }
}

/// Names of things in a database or in a pod, and parts of label selectors. None of them becomes part of a URL.
const NOT_IN_KUBERNETES: &[&str] = &[
    ".object.name",
    ".roles[].name",
    ".members[].name",
    ".schemas[].name",
    ".databases[].name",
    ".extraEnv[].name",
    ".claims[].name",
    ".hostnames[]",
    ".databases[].names[]",
    ".roles[].names[]",
    ".adoption.names[]",
    ".matchExpressions[].key",
    ".tolerations[].key",
    ".username",
    ".roleName",
    ".dbname",
    ".containerName",
    ".volumeName",
];

#[test]
fn every_name_in_kubernetes_has_a_pattern() {
    let sounds_like_a_name = |path: &str| {
        let last = path.rsplit('.').next().unwrap_or_default().to_lowercase();
        ["name", "names[]", "namespace", "secret", "key", "class"]
            .iter()
            .any(|end| last.ends_with(end))
    };
    let mut patterns = 0;
    for (path, schema) in fields() {
        if schema.type_.as_deref() != Some("string") || schema.enum_.is_some() {
            continue;
        }
        if names::kind_of(&path).is_some() {
            patterns += 1;
            let pattern = Regex::new(schema.pattern.as_deref().unwrap()).unwrap();
            for no_name in [
                "../../bank/secrets/pw",
                "pw?watch=true",
                "a/b",
                "a%2fb",
                "a b",
                "a#b",
            ] {
                assert!(!pattern.is_match(no_name), "{path}: {no_name}");
            }
            assert!(schema.max_length.is_some_and(|most| most <= 253), "{path}");
        } else if sounds_like_a_name(&path) {
            let known = NOT_IN_KUBERNETES.iter().any(|end| path.ends_with(end));
            assert!(
                known,
                "{path} sounds like a name: it belongs into names::FIELDS, or into the list above"
            );
        }
    }
    assert!(patterns > 60, "{patterns}");
}
