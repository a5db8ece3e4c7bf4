//! Objects from the schema of their kind, with a liking for the values at which things break.
//!
//! The schema decides what the API server lets in, so whatever is made here and let in must be dealt with.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedMutRandom as _, IndexedRandom as _};
use serde_json::{Map, Value, json};

/// How deep a free-form value goes.
const DEPTH: usize = 3;

/// Text that somebody may take for something else.
const ODD: [&str; 8] = [
    "0",
    "1s",
    "18446744073709551615s",
    "-1",
    "true",
    "null",
    "1e9999",
    "10Gi",
];

/// The schema of a kind's spec.
pub fn spec_of(definition: &CustomResourceDefinition) -> JSONSchemaProps {
    let version = definition.spec.versions.iter().find(|version| version.storage);
    let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.clone());
    let properties = schema.and_then(|schema| schema.properties).unwrap_or_default();
    properties.get("spec").cloned().unwrap_or_default()
}

/// A random value that this schema may accept. Patterns and rules are not solved: what they refuse, the API server refuses.
pub fn value(schema: &JSONSchemaProps, random: &mut StdRng) -> Value {
    if let Some(values) = schema.enum_.as_ref().filter(|values| !values.is_empty()) {
        return values.choose(random).map_or(Value::Null, |value| value.0.clone());
    }
    if let Some(default) = &schema.default
        && random.random_bool(0.3)
    {
        return default.0.clone();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return if random.random() {
            integer(schema, random)
        } else {
            text(schema, random)
        };
    }
    match schema.type_.as_deref() {
        Some("object") => object(schema, random),
        Some("array") => array(schema, random),
        Some("string") => text(schema, random),
        Some("integer") => integer(schema, random),
        Some("number") => json!(*[0.0, -1.5, 1e300, 0.1].choose(random).unwrap_or(&0.0)),
        Some("boolean") => json!(random.random::<bool>()),
        _ => anything(random, DEPTH),
    }
}

/// The same value with one field, anywhere in it, made anew or taken away. Says where.
pub fn change(schema: &JSONSchemaProps, value: &mut Value, random: &mut StdRng) -> String {
    let Some(properties) = schema.properties.as_ref().filter(|all| !all.is_empty()) else {
        *value = self::value(schema, random);
        return String::new();
    };
    if !value.is_object() {
        *value = json!({});
    }
    let names: Vec<&String> = properties.keys().collect();
    let Some((name, field)) = names
        .choose(random)
        .and_then(|name| Some((*name, properties.get(*name)?)))
    else {
        return String::new();
    };
    let required = schema.required.as_ref().is_some_and(|all| all.contains(name));
    let present = value.get(name).is_some();
    let deeper = present && field.properties.as_ref().is_some_and(|all| !all.is_empty());
    if deeper && random.random_bool(0.8) {
        let within = change(field, &mut value[name], random);
        return format!(".{name}{within}");
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &field.items
        && item.properties.as_ref().is_some_and(|all| !all.is_empty())
        && let Some(items) = value[name].as_array_mut()
        && random.random_bool(0.7)
        && let Some(one) = items.choose_mut(random)
    {
        let within = change(item, one, random);
        return format!(".{name}[]{within}");
    }
    if present && !required && random.random_bool(0.3) {
        if let Some(fields) = value.as_object_mut() {
            fields.shift_remove(name);
        }
        return format!(".{name} (taken away)");
    }
    value[name] = self::value(field, random);
    format!(".{name}")
}

fn object(schema: &JSONSchemaProps, random: &mut StdRng) -> Value {
    let mut fields = Map::new();
    for (name, field) in schema.properties.iter().flatten() {
        let required = schema.required.as_ref().is_some_and(|all| all.contains(name));
        if required || random.random_bool(0.3) {
            fields.insert(name.clone(), value(field, random));
        }
    }
    if let Some(JSONSchemaPropsOrBool::Schema(entry)) = &schema.additional_properties {
        for _ in 0..random.random_range(0..3) {
            fields.insert(word(random), value(entry, random));
        }
    }
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) && random.random() {
        fields.insert(word(random), anything(random, DEPTH));
    }
    fields.into()
}

fn array(schema: &JSONSchemaProps, random: &mut StdRng) -> Value {
    let least = usize::try_from(schema.min_items.unwrap_or(0)).unwrap_or(0);
    let most = schema
        .max_items
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(3)
        .min(least + 3);
    let item = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => Some(item),
        _ => None,
    };
    (0..random.random_range(least..=most.max(least)))
        .map(|_| match item {
            Some(item) => value(item, random),
            None => anything(random, DEPTH),
        })
        .collect()
}

fn text(schema: &JSONSchemaProps, random: &mut StdRng) -> Value {
    match schema.format.as_deref() {
        Some("date-time") => {
            let times = [
                "9999-12-31T23:59:59Z",
                "0001-01-01T00:00:00Z",
                "1970-01-01T00:00:00Z",
                "2038-01-19T03:14:08Z",
                "2030-06-01T12:00:00+02:00",
                "2016-12-31T23:59:60Z",
            ];
            return json!(times.choose(random));
        }
        Some("duration") => return json!(["0s", "1h", "8784h", "1ms"].choose(random)),
        _ => {}
    }
    let least = usize::try_from(schema.min_length.unwrap_or(0)).unwrap_or(0);
    let most = schema
        .max_length
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(64)
        .min(300);
    let text = match random.random_range(0..8) {
        0 => "x".repeat(most),
        1 => "x".repeat(least),
        2 => "Ünïcödé \u{1f600} 'quoted' \"twice\" \\ ; --".to_owned(),
        3 => (*ODD.choose(random).unwrap_or(&"0")).to_owned(),
        4 => "app.example.com".to_owned(),
        _ => word(random),
    };
    json!(text)
}

fn integer(schema: &JSONSchemaProps, random: &mut StdRng) -> Value {
    let (least, most) = match schema.format.as_deref() {
        Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => (-9_007_199_254_740_992.0, 9_007_199_254_740_992.0),
    };
    #[allow(
        clippy::cast_possible_truncation,
        reason = "bounds of schemas are whole numbers"
    )]
    let (least, most) = (
        schema.minimum.unwrap_or(least) as i64,
        schema.maximum.unwrap_or(most) as i64,
    );
    let candidates = [
        least,
        most,
        0,
        1,
        2,
        least.saturating_add(1),
        most.saturating_sub(1),
        5_000_000_000,
    ];
    let possible: Vec<i64> = candidates
        .into_iter()
        .filter(|number| (least..=most).contains(number))
        .collect();
    json!(possible.choose(random).copied().unwrap_or(least))
}

fn anything(random: &mut StdRng, depth: usize) -> Value {
    match random.random_range(0..if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(random.random::<bool>()),
        2 => json!(*[0, -1, 5, i64::from(i32::MAX) + 1].choose(random).unwrap_or(&0)),
        3 => json!(0.5),
        4 => json!(word(random)),
        5 => json!([anything(random, depth - 1)]),
        _ => {
            let key = word(random);
            json!({ key: anything(random, depth - 1) })
        }
    }
}

fn word(random: &mut StdRng) -> String {
    let words = [
        "a",
        "app",
        "shop",
        "reader",
        "postgres",
        "public",
        "x-1",
        "name",
        "READ",
        "default",
        "nodeAffinity",
        "runAsUser",
    ];
    (*words.choose(random).unwrap_or(&"a")).to_owned()
}
