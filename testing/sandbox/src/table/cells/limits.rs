//! Kinds that limit or scale others.

use serde_json::{Value, json};

use super::list;
use crate::store::text;

/// The cell, if the kind is one of these.
pub(super) fn cell(kind: &str, column: &str, object: &Value) -> Option<Value> {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    Some(match (kind, column) {
        ("autoscaling/horizontalpodautoscalers", "Reference") => json!(format!(
            "{}/{}",
            text(object, "/spec/scaleTargetRef/kind"),
            text(object, "/spec/scaleTargetRef/name")
        )),
        ("autoscaling/horizontalpodautoscalers", "Targets") => json!(targets(object)),
        ("autoscaling/horizontalpodautoscalers", "MinPods") => {
            json!(number("/spec/minReplicas").map_or("<unset>".to_owned(), |least| least.to_string()))
        }
        ("autoscaling/horizontalpodautoscalers", "MaxPods") => json!(number("/spec/maxReplicas")),
        ("autoscaling/horizontalpodautoscalers", "Replicas") => {
            json!(number("/status/currentReplicas").unwrap_or_default())
        }
        ("policy/poddisruptionbudgets", "Min Available") => limit(object.pointer("/spec/minAvailable")),
        ("policy/poddisruptionbudgets", "Max Unavailable") => limit(object.pointer("/spec/maxUnavailable")),
        ("/resourcequotas", "Request") => json!(quota(object, false)),
        ("/resourcequotas", "Limit") => json!(quota(object, true)),
        _ => return None,
    })
}

/// A number or a percentage, as text.
fn limit(value: Option<&Value>) -> Value {
    match value {
        None => json!("N/A"),
        Some(Value::String(part)) => json!(part),
        Some(number) => json!(number.to_string()),
    }
}

/// The targets of an autoscaler. Nothing is measured.
fn targets(object: &Value) -> String {
    let target = |metric: &&Value| {
        let name = text(metric, "/resource/name");
        let share = metric.pointer("/resource/target/averageUtilization");
        let value = text(metric, "/resource/target/averageValue");
        match share {
            Some(share) => format!("{name}: <unknown>/{share}%"),
            None => format!("{name}: <unknown>/{value}"),
        }
    };
    let metrics = list(object, "/spec/metrics");
    let shown: Vec<String> = metrics
        .iter()
        .filter(|metric| text(metric, "/type") == "Resource")
        .map(target)
        .collect();
    if shown.is_empty() {
        "<none>".to_owned()
    } else {
        shown.join(", ")
    }
}

/// The used and the allowed amount; limits have a separate column.
fn quota(object: &Value, limits: bool) -> String {
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    let mut names: Vec<&String> = hard.into_iter().flatten().map(|(name, _)| name).collect();
    names.retain(|name| name.starts_with("limits.") == limits);
    names.sort();
    let amount = |place: &str, name: &str| {
        let amounts = object.pointer(&format!("/status/{place}"));
        let amount = amounts.and_then(|amounts| amounts.get(name)?.as_str());
        amount.unwrap_or("0").to_owned()
    };
    let shown: Vec<String> = names
        .into_iter()
        .map(|name| format!("{name}: {}/{}", amount("used", name), amount("hard", name)))
        .collect();
    shown.join(", ")
}
