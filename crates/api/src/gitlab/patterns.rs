//! Patterns for strings in a spec. Helm values are templates: a host with a scheme, a space or a brace in it would
//! render into something unintended.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use schemars::{Schema, SchemaGenerator, json_schema};

/// Name of a Kubernetes object.
pub const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// Name of a Kubernetes object, or an empty string.
pub const NAME_OR_NOTHING: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";
/// Host name: labels of lower-case letters, digits and hyphens, without a scheme, a port, a path or a wildcard.
pub const HOST: &str = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$";
/// Version of GitLab, the beginning of one, or an alias.
pub const VERSION: &str = r"^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$";
/// Version of a chart, or a range of versions.
pub const CHART_VERSION: &str = r"^[-A-Za-z0-9.+*^~<>=|, ]+$";
/// Cron schedule: five fields, or a word such as `@daily`.
pub const CRON: &str = r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?LW#-]+( [0-9A-Za-z*/,?LW#-]+){4})$";
/// Quantity, as Kubernetes writes it.
pub const QUANTITY: &str = r"^[0-9]{1,18}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|Ei|m|k|M|G|T|P|E)?$";
/// Key of a label, or an empty string.
const LABEL_KEY: &str =
    r"^(([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
/// Value of a label.
const LABEL_VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
/// Operators of a toleration.
const OPERATORS: [&str; 5] = ["", "Exists", "Equal", "Lt", "Gt"];
/// Effects of a taint.
const EFFECTS: [&str; 4] = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Schema of a quantity.
pub(super) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 40, "pattern": QUANTITY })
}

/// Schema of labels. A CEL rule of the CRD checks their keys: a schema cannot.
pub(super) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
        "x-kubernetes-validations": [{
            "rule": "self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
            "message": "a label is a name of letters, digits, - _ and ., perhaps after a domain and a slash",
        }],
    })
}

/// Schema of tolerations, with the fields that Kubernetes defines.
pub(super) fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 64,
        "items": { "type": "object", "properties": {
            "key": { "type": "string", "maxLength": 317, "pattern": LABEL_KEY },
            "operator": { "type": "string", "enum": OPERATORS },
            "value": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
            "effect": { "type": "string", "enum": EFFECTS },
            "tolerationSeconds": { "type": "integer", "format": "int64" },
        }},
    })
}

/// Whether the text is a host name.
pub fn is_host(text: &str) -> bool {
    is_name(text) && text.split('.').all(|label| label.len() <= 63)
}

/// Whether the text is the name of an object.
pub fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(inner)
            && bytes.last().copied().is_some_and(inner)
            && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// Whether the text is a cron schedule.
pub fn is_cron(text: &str) -> bool {
    const WORDS: [&str; 7] = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    let field = |field: &str| {
        !field.is_empty()
            && field
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"*/,?#-".contains(&byte))
    };
    WORDS.contains(&text) || (text.split(' ').count() == 5 && text.split(' ').all(field))
}

/// Whether keys and values are valid labels.
pub fn are_labels(labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .all(|(key, value)| is_label_key(key) && is_label_value(value))
}

/// Whether the toleration has no other text than Kubernetes allows in a taint.
pub fn is_toleration(toleration: &Toleration) -> bool {
    let text = |field: &Option<String>, is_valid: fn(&str) -> bool| field.as_deref().is_none_or(is_valid);
    text(&toleration.key, |key| key.is_empty() || is_label_key(key))
        && text(&toleration.operator, |operator| OPERATORS.contains(&operator))
        && text(&toleration.value, is_label_value)
        && text(&toleration.effect, |effect| EFFECTS.contains(&effect))
}

fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => is_name(domain) && is_label_word(name),
        None => is_label_word(key),
    }
}

fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_word(value)
}

fn is_label_word(text: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && end(bytes.first())
        && end(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_nothing_but_a_host() {
        for host in [
            "git.example.com",
            "gitlab",
            "1.example.com",
            "xn--bcher-kva.example",
        ] {
            assert!(is_host(host), "{host}");
        }
        for text in [
            "",
            "https://git.example.com",
            "git.example.com:8443",
            "git.example.com/x",
            "git example.com",
            "*.example.com",
            "bücher.example",
            "{{ .Values.x }}",
            "git..example.com",
            ".example.com",
            "example.com.",
            "-git.example.com",
            "git-.example.com",
            "Git.example.com",
            "git_lab.example.com",
            "a\nb",
        ] {
            assert!(!is_host(text), "{text}");
        }
        assert!(!is_host(&"a".repeat(64)));
    }

    #[test]
    fn a_cron_line_has_five_fields() {
        for line in ["30 2 * * *", "*/5 0-3,8 1 JAN MON", "@daily"] {
            assert!(is_cron(line), "{line}");
        }
        for line in [
            "",
            "daily",
            "30 2 * *",
            "30 2 * * * *",
            "30 2 * * *\n",
            "{{ x }} 2 * * *",
            "30  2 * * *",
            "$(id) 2 * * *",
        ] {
            assert!(!is_cron(line), "{line}");
        }
    }

    #[test]
    fn labels_are_labels() {
        let labels = |key: &str, value: &str| are_labels(&[(key.to_owned(), value.to_owned())].into());
        assert!(
            labels("pool", "gitlab") && labels("node.kubernetes.io/role", "") && labels("a.b/C_d", "X-1")
        );
        for (key, value) in [
            ("", "x"),
            ("a b", "x"),
            ("/x", "x"),
            ("x/", "x"),
            ("a/b/c", "x"),
            ("x", "a b"),
            ("x", "{{ }}"),
            ("x", "-a"),
        ] {
            assert!(!labels(key, value), "{key}={value}");
        }
    }
    #[test]
    fn a_toleration_is_that_of_a_taint() {
        let valid = |field: &str, text: &str| {
            let toleration = serde_json::json!({ field: text });
            is_toleration(&serde_json::from_value(toleration).unwrap())
        };
        for (field, text) in [
            ("key", ""),
            ("key", "dedicated"),
            ("key", "node.kubernetes.io/not-ready"),
            ("operator", "Exists"),
            ("value", ""),
            ("value", "gitlab"),
            ("effect", "NoSchedule"),
        ] {
            assert!(valid(field, text), "{field}: {text}");
        }
        for field in ["key", "operator", "value", "effect"] {
            for text in ["{{ x }}", "a b", "-a", "a\n", "a/b/c", "bücher"] {
                assert!(!valid(field, text), "{field}: {text}");
            }
        }
        assert!(!valid("value", "a/b") && !valid("value", &"a".repeat(64)));
    }
}
