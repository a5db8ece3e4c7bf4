//! Label and field selectors.

mod fields;
mod labels;

use serde_json::Value;

use self::labels::Requirement;
use crate::error::ApiError;
use crate::resource::Resource;

/// The selector of a list or a watch. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Path, value, whether it must be equal.
    fields: Vec<(String, String, bool)>,
}

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str, resource: &Resource) -> Result<Self, ApiError> {
        Ok(Self {
            labels: labels::parse(labels)?,
            fields: fields::parse(fields, resource)?,
        })
    }

    /// A selector for labels alone, such as that of a webhook or a workload.
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

    /// Restricts the selector to the object of this name. Field selectors may repeat the name, but nothing else.
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
                .all(|(path, wanted, equal)| (fields::value(object, path) == *wanted) == *equal)
    }
}

fn number(label: Option<&str>) -> Option<i64> {
    label?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: &str) -> bool {
        let selector = Selector {
            labels: labels::parse(selector).unwrap(),
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
            assert!(labels::parse(wrong).is_err(), "{wrong}");
        }
    }
}
