//! Label and field selectors.

use serde_json::Value;

use crate::error::ApiError;
use crate::lifecycle::is_label_key;
use crate::resource::Resource;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Above(String, i64),
    Below(String, i64),
}

/// What a list or a watch is restricted to. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Path, wanted value, whether it must be equal.
    fields: Vec<(String, String, bool)>,
}

/// Fields of built-in kinds that can be selected by, beside name and namespace.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "/events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    (
        "/pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    ("/secrets", &["type"]),
    ("/namespaces", &["status.phase"]),
    ("/nodes", &["spec.unschedulable"]),
    ("/services", &["spec.clusterIP", "spec.type"]),
    ("/replicationcontrollers", &["status.replicas"]),
    ("apps/replicasets", &["status.replicas"]),
    ("batch/jobs", &["status.successful"]),
    (
        "certificates.k8s.io/certificatesigningrequests",
        &["spec.signerName"],
    ),
];

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str, resource: &Resource) -> Result<Self, ApiError> {
        Ok(Self {
            labels: parse_labels(labels)?,
            fields: parse_fields(fields, resource)?,
        })
    }

    /// A selector over labels alone, such as that of a webhook or a workload.
    pub(crate) fn of_labels(selector: &Value) -> Self {
        let mut labels = Vec::new();
        for (key, value) in selector
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            labels.push(Requirement::In(
                key.clone(),
                vec![value.as_str().unwrap_or_default().to_owned()],
            ));
        }
        for rule in selector
            .get("matchExpressions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let text = |key: &str| {
                rule.get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let values = rule.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values
                .filter_map(|value| value.as_str().map(str::to_owned))
                .collect();
            labels.push(match text("operator").as_str() {
                "In" => Requirement::In(text("key"), values),
                "NotIn" => Requirement::NotIn(text("key"), values),
                "Exists" => Requirement::Exists(text("key")),
                _ => Requirement::Missing(text("key")),
            });
        }
        Self {
            labels,
            fields: Vec::new(),
        }
    }

    /// Only the object of this name, if its labels are selected. Fields may say the same, and nothing else.
    pub(crate) fn named(mut self, name: &str) -> Result<Self, ApiError> {
        let own = ("metadata.name".to_owned(), name.to_owned(), true);
        if self.fields.is_empty() {
            self.fields.push(own);
        } else if !self.fields.contains(&own) {
            return Err(ApiError::bad_request(
                "fieldSelector metadata.name doesn't match requested name",
            ));
        }
        Ok(self)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        let by_label = self.labels.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Missing(key) => label(key).is_none(),
            Requirement::In(key, values) => label(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|v| v != value))
            }
            Requirement::Above(key, bound) => number(label(key)).is_some_and(|value| value > *bound),
            Requirement::Below(key, bound) => number(label(key)).is_some_and(|value| value < *bound),
        });
        by_label
            && self
                .fields
                .iter()
                .all(|(path, wanted, equal)| (field(object, path) == *wanted) == *equal)
    }
}

fn number(label: Option<&str>) -> Option<i64> {
    label?.parse().ok()
}

fn field(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |value, key| value.get(key));
    match (found, path) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(Value::Object(source)), "source") => source
            .get("component")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        (Some(Value::Null) | None, "spec.hostNetwork" | "spec.unschedulable") => "false".to_owned(),
        (Some(Value::Null) | None, _) => String::new(),
        (Some(other), _) => other.to_string(),
    }
}

fn parse_fields(text: &str, resource: &Resource) -> Result<Vec<(String, String, bool)>, ApiError> {
    let mut fields = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (path, value, true)
        } else {
            return Err(ApiError::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            )));
        };
        let known = matches!(path, "metadata.name" | "metadata.namespace")
            || FIELDS
                .iter()
                .any(|(storage, paths)| *storage == &*resource.storage && paths.contains(&path))
            || resource
                .custom
                .as_ref()
                .is_some_and(|custom| custom.selectable.iter().any(|p| p == path));
        if !known {
            let own =
                resource.custom.is_some() || FIELDS.iter().any(|(storage, _)| *storage == &*resource.storage);
            return Err(ApiError::bad_request(if own {
                format!("field label not supported: {path}")
            } else {
                format!(
                    "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }));
        }
        fields.push((path.to_owned(), value.to_owned(), equal));
    }
    Ok(fields)
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, ApiError> {
    let mut requirements = Vec::new();
    if text.trim().is_empty() {
        return Ok(requirements);
    }
    for term in split_outside_braces(text) {
        let term = term.trim();
        requirements.push(parse_label(term).ok_or_else(|| {
            ApiError::bad_request(format!(
                "unable to parse requirement: found '{term}', expected: a requirement"
            ))
        })?);
    }
    Ok(requirements)
}

fn parse_label(term: &str) -> Option<Requirement> {
    let plain = |text: &str| {
        let text = text.trim();
        (text.is_empty() || is_label_key(text)).then(|| text.to_owned())
    };
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Requirement::NotIn(plain(key)?, vec![plain(value)?]));
    }
    if let Some(key) = term.strip_prefix('!') {
        return Some(Requirement::Missing(plain(key)?));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(Requirement::In(plain(key)?, vec![plain(value)?]));
    }
    if let Some((key, bound)) = term.split_once('>') {
        return Some(Requirement::Above(plain(key)?, plain(bound)?.parse().ok()?));
    }
    if let Some((key, bound)) = term.split_once('<') {
        return Some(Requirement::Below(plain(key)?, plain(bound)?.parse().ok()?));
    }
    let Some((head, values)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) else {
        return is_label_key(term).then(|| Requirement::Exists(term.to_owned()));
    };
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    match head.split_whitespace().collect::<Vec<_>>().as_slice() {
        [key, "in"] => Some(Requirement::In((*key).to_owned(), values)),
        [key, "notin"] => Some(Requirement::NotIn((*key).to_owned(), values)),
        _ => None,
    }
}

fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: &str) -> bool {
        let selector = Selector {
            labels: parse_labels(selector).unwrap(),
            fields: Vec::new(),
        };
        selector.matches(&json!({"metadata": {"labels": {"app": "web", "tier": "front", "size": "3"}}}))
    }

    #[test]
    fn labels_are_selected_by_sets() {
        for yes in [
            "",
            "app",
            "app=web",
            "app==web,tier",
            "app in (web, db)",
            "!gone",
            "gone!=x",
            "app notin (a,b)",
            "size>2,size<4",
        ] {
            assert!(selects(yes), "{yes}");
        }
        for no in [
            "gone",
            "app=db",
            "app in (db),tier",
            "!app",
            "app!=web",
            "tier notin (front)",
        ] {
            assert!(!selects(no), "{no}");
        }
        for wrong in ["app in", "!!app", "a===b", "size>many"] {
            assert!(parse_labels(wrong).is_err(), "{wrong}");
        }
    }
}
