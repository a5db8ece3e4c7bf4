//! Redaction of objects for a report.
//!
//! Everything that is not known to be harmless is redacted: numbers, booleans and the structure stay; the strings in a
//! spec stay only if their field is listed here. The operator's own text (conditions, events, its log) contains no
//! secrets; credentials that others put into such a text are recognised by their format. SQL in a status repeats values of
//! a spec, so it is shown without literals.

mod assignment;
mod sql;
mod text;

use serde_json::{Map, Value};

pub use self::text::text;

/// Fields of a spec whose strings are names, kinds, sizes and enums. By their meaning, none of them can contain a
/// credential.
const HARMLESS: &[&str] = &[
    "apiGroup",
    "apiVersion",
    "architecture",
    "class",
    "cpu",
    "database",
    "databases",
    "deletionPolicy",
    "effect",
    "existingRolePolicy",
    "imagePullPolicy",
    "ingressClassName",
    "instanceRef",
    "key",
    "kind",
    "memberOf",
    "membership",
    "memory",
    "mode",
    "name",
    "namespace",
    "namespaces",
    "object_type",
    "objectType",
    "operator",
    "owner",
    "phase",
    "pattern",
    "policy",
    "priorityClassName",
    "privileges",
    "profile",
    "protocol",
    "reconciliation_mode",
    "restartPolicy",
    "role",
    "roles",
    "runtimeClassName",
    "schema",
    "schemas",
    "secretName",
    "serviceAccountName",
    "size",
    "sslMode",
    "storage",
    "storageClass",
    "storageClassName",
    "topology",
    "topologyKey",
    "type",
    "unit",
    "username",
    "verbs",
    "version",
    "volumeName",
    "whenUnsatisfiable",
];

/// Fields below which everything is free-form.
const OPAQUE: &[&str] = &[
    "data",
    "stringData",
    "binaryData",
    "values",
    "password",
    "passwords",
    "env",
    "extraEnv",
    "environment",
    "headers",
    "caBundle",
];

/// Fields of a status with SQL, as one text or as a list of statements.
const SQL: &[&str] = &["planned_sql", "sql", "sqlInline"];

/// Annotations whose values are ours, or Kubernetes' own and harmless.
const ANNOTATIONS: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "helm.sh/resource-policy",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
    "pgroles.io/approved",
    "pgroles.io/rejected",
    "reconcile.pgroles.io/requestedAt",
];

/// The replacement of a string.
const BLANK: &str = "[REDACTED]";

/// The redacted object.
pub fn object(object: &Value) -> Value {
    let Some(fields) = object.as_object() else {
        return Value::Null;
    };
    let mut shown = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "apiVersion" | "kind" => value.clone(),
            "metadata" => metadata(value),
            "status"
            | "note"
            | "reason"
            | "type"
            | "regarding"
            | "series"
            | "eventTime"
            | "action"
            | "reportingController"
            | "deprecatedFirstTimestamp"
            | "deprecatedLastTimestamp"
            | "rules"
            | "roleRef"
            | "subjects" => words(value),
            _ => given(value, false),
        };
        shown.insert(name.clone(), value);
    }
    Value::Object(shown)
}

fn metadata(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("managedFields");
        if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
            // `kubectl apply` stores a copy of the whole object here.
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            for (name, value) in annotations.iter_mut() {
                if !ANNOTATIONS.contains(&name.as_str()) {
                    *value = Value::from(BLANK);
                }
            }
        }
    }
    value
}

/// Text of the operator, of the cluster or of this program, which may repeat text of others.
pub fn words(value: &Value) -> Value {
    match value {
        Value::String(string) => Value::from(text(string)),
        Value::Array(list) => list.iter().map(words).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let value = if OPAQUE.contains(&name.as_str()) && !value.is_object() {
                    Value::from(BLANK)
                } else if SQL.contains(&name.as_str()) {
                    statements(value)
                } else {
                    words(value)
                };
                (name.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

/// SQL without its literals.
fn statements(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(sql::blanked(text)),
        Value::Array(list) => list.iter().map(statements).collect(),
        other => words(other),
    }
}

/// A value that a person wrote. `harmless`: whether the parent field allows strings.
fn given(value: &Value, harmless: bool) -> Value {
    match value {
        Value::String(words) if harmless => Value::from(text(words)),
        Value::String(_) => Value::from(BLANK),
        Value::Array(list) => list.iter().map(|value| given(value, harmless)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let value = match name.as_str() {
                    "args" | "command" => arguments(value),
                    "env" => names(value),
                    name if OPAQUE.contains(&name) => shape(value),
                    name => given(value, HARMLESS.contains(&name)),
                };
                (name.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

/// Names of environment variables and their Secrets, without inline values.
fn names(value: &Value) -> Value {
    let Some(list) = value.as_array() else {
        return shape(value);
    };
    list.iter()
        .map(|variable| {
            let mut shown = Map::new();
            if let Some(name) = variable.get("name") {
                shown.insert("name".to_owned(), name.clone());
            }
            if let Some(from) = variable.get("valueFrom") {
                shown.insert("valueFrom".to_owned(), given(from, false));
            } else {
                shown.insert("value".to_owned(), Value::from(BLANK));
            }
            Value::Object(shown)
        })
        .collect()
}

/// Arguments of the operator: an address of a server is always redacted.
fn arguments(value: &Value) -> Value {
    const NAMES: [&str; 12] = [
        "url",
        "uri",
        "dsn",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "key",
        "credential",
        "header",
    ];
    let mut hide_next = false;
    let words = value.as_array().into_iter().flatten().map(|word| {
        let word = word.as_str().unwrap_or_default();
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let lower = name.to_ascii_lowercase();
        let secret = NAMES.iter().any(|part| lower.contains(part));
        let shown = match () {
            () if hide_next => BLANK.to_owned(),
            () if secret && !value.is_empty() => format!("{name}={BLANK}"),
            () => text(word),
        };
        hide_next = secret && value.is_empty() && word.starts_with('-');
        Value::from(shown)
    });
    words.collect()
}

/// Only the size.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::from(format!("{BLANK} ({} fields)", fields.len())),
        Value::Array(list) => Value::from(format!("{BLANK} ({} entries)", list.len())),
        Value::Null => Value::Null,
        _ => Value::from(BLANK),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{SQL, object};

    /// The values of spec fields come back in the SQL of a status.
    #[test]
    fn every_status_field_with_sql_is_listed() {
        /// Fields that contain no SQL.
        const OTHERS: [&str; 2] = ["redactedSqlHash", "sqlHash"];
        fn visit(schema: &Value, name: &str, found: &mut Vec<String>) {
            let is_text = |schema: &Value| schema["type"] == "string";
            let is_sql = name.to_lowercase().contains("sql");
            if is_sql && (is_text(schema) || is_text(&schema["items"])) {
                found.push(name.to_owned());
            }
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                visit(schema, name, found);
            }
            for below in ["items", "additionalProperties"] {
                if schema[below].is_object() {
                    visit(&schema[below], name, found);
                }
            }
        }
        let mut found = Vec::new();
        for crd in stanchion_api::crds() {
            let crd = serde_json::to_value(crd).unwrap();
            let status = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status");
            visit(status.unwrap_or(&Value::Null), "", &mut found);
        }
        found.retain(|name| !OTHERS.contains(&name.as_str()));
        found.sort();
        found.dedup();
        assert_eq!(found, SQL);
    }

    #[test]
    fn arguments_lose_what_may_be_a_credential() {
        let shown = |arguments: Value| {
            let shown = object(&json!({ "spec": { "containers": [{ "args": arguments }] } }));
            shown.pointer("/spec/containers/0/args").unwrap().clone()
        };
        assert_eq!(
            shown(json!([
                "--Api-Key=hunter2",
                "--client-secret",
                "hunter2",
                "-PASSWORD",
                "hunter2",
                "DB_DSN=hunter2",
                "--otlp-headers=hunter2",
                "--namespace=shop",
                "--leader-elect",
            ])),
            json!([
                "--Api-Key=[REDACTED]",
                "--client-secret",
                "[REDACTED]",
                "-PASSWORD",
                "[REDACTED]",
                "DB_DSN=[REDACTED]",
                "--otlp-headers=[REDACTED]",
                "--namespace=shop",
                "--leader-elect",
            ])
        );
    }
}
