//! Redaction of objects for a report.
//!
//! Everything that is not known to be harmless is redacted: numbers, booleans and the structure stay; the strings in a
//! spec stay only if their field is listed here. The operator's own text (conditions, events, its log) contains no
//! secrets; credentials that others put into such a text are recognised by their format. SQL in a status repeats values of
//! a spec, so it is shown without literals.

mod sql;

use serde_json::{Map, Value};

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
const SQL: &[&str] = &["sql", "sqlInline"];

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
    let mut hide_next = false;
    let words = value.as_array().into_iter().flatten().map(|word| {
        let word = word.as_str().unwrap_or_default();
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let secret = name.contains("url") || name.contains("password") || name.contains("token");
        let shown = match () {
            () if hide_next => BLANK.to_owned(),
            () if secret && !value.is_empty() => format!("{name}={BLANK}"),
            () => text(word),
        };
        hide_next = secret && value.is_empty() && word.starts_with("--");
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

/// A text of the operator, without everything that looks like a credential: the user in a URL, the value of
/// `password=`, a token, a private key.
pub fn text(words: &str) -> String {
    let mut shown = String::with_capacity(words.len());
    let mut in_key = false;
    for line in words.split_inclusive('\n') {
        let starts = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
        let ends = line.contains("-----END") && line.contains("PRIVATE KEY");
        if starts || in_key {
            if starts {
                shown.push_str(BLANK);
            }
            in_key = !ends;
            continue;
        }
        shown.push_str(&assignments(&tokens(&urls(line))));
    }
    shown
}

/// Removes the user and password from `postgres://user:password@host`.
fn urls(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let ends = |c: char| {
            c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '`' | '<' | '>' | '?' | '#' | ',' | ')')
        };
        let end = after.find(ends).unwrap_or(after.len());
        let (authority, left) = after.split_at(end);
        // A password may itself contain one of these characters: then the at sign comes later in the same word.
        let word = after.find(char::is_whitespace).unwrap_or(after.len());
        let (whole, behind) = after.split_at(word);
        match (authority.rsplit_once('@'), whole.rsplit_once('@')) {
            (Some((_, host)), _) => {
                shown.extend([BLANK, "@", host]);
                rest = left;
            }
            (None, Some((_, host))) => {
                shown.extend([BLANK, "@", host]);
                rest = behind;
            }
            (None, None) => {
                shown.push_str(authority);
                rest = left;
            }
        }
    }
    shown.push_str(rest);
    shown
}

/// JSON web tokens.
fn tokens(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("eyJ") {
        let (before, token) = rest.split_at(at);
        let end = token.find(|c| !is_part(c)).unwrap_or(token.len());
        let (token, after) = token.split_at(end);
        shown.push_str(before);
        shown.push_str(if token.matches('.').count() >= 2 {
            BLANK
        } else {
            token
        });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Removes the value of `password=…`, `"token": "…"` and similar texts.
fn assignments(text: &str) -> String {
    const NAMES: [&str; 6] = ["password", "passwd", "secret", "token", "apikey", "api_key"];
    let lower = text.to_ascii_lowercase();
    let mut shown = String::new();
    let mut from = 0;
    while let Some((at, name)) = NAMES
        .iter()
        .filter_map(|name| lower.get(from..)?.find(name).map(|at| (from + at, *name)))
        .min()
    {
        let after = at + name.len();
        let tail = text.get(after..).unwrap_or_default();
        let value = tail.trim_start_matches(['"', '\'', '\\']);
        let value = value.trim_start();
        let Some(value) = value.strip_prefix(['=', ':']) else {
            shown.push_str(text.get(from..after).unwrap_or_default());
            from = after;
            continue;
        };
        let value = value.trim_start().trim_start_matches('\\');
        let (value, end): (&str, &[char]) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => (
                value.get(1..).unwrap_or_default(),
                if quote == '"' { &['"', '\\'] } else { &['\''] },
            ),
            _ => (value, &[' ', '\t', '\n', '&', ',', ';', '}', ')']),
        };
        let start = text.len() - value.len();
        let length = value.find(end).unwrap_or(value.trim_end_matches('\n').len());
        shown.push_str(text.get(from..start).unwrap_or_default());
        let given = value.get(..length).unwrap_or_default();
        // "cannot read the password secret: Secret x does not exist" is a sentence about a kind.
        if ["Secret", "secrets", "ConfigMap", "configmaps"].contains(&given) {
            shown.push_str(given);
        } else if length > 0 {
            shown.push_str(BLANK);
        }
        from = start + length;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    shown
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_sentence_about_a_secret_stays_readable() {
        let sentence = r#"cannot read password secret: Secret "billing" does not exist"#;
        assert_eq!(text(sentence), sentence);
        let answer = r#"cannot read password secret: secrets "billing" not found"#;
        assert_eq!(text(answer), answer);
        assert_eq!(
            text("secret: Secret1, token=ConfigMaps"),
            "secret: [REDACTED], token=[REDACTED]"
        );
    }
}
