//! Autoscalers.

use serde_json::{Value, json};

use super::values::{items, one_of};
use crate::error::FieldError;
use crate::schema::quantity;
use crate::store::text;

/// The target, the limits and the metrics of an autoscaler.
pub(super) fn check(object: &Value, errors: &mut Vec<FieldError>) {
    const KINDS: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let number = |key: &str| object.pointer(&format!("/spec/{key}")).and_then(Value::as_i64);
    let (least, most) = (
        number("minReplicas").unwrap_or(1),
        number("maxReplicas").unwrap_or(0),
    );
    if least < 1 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid("spec.minReplicas", &json!(least), detail));
    }
    if most < 1 {
        let detail = "must be set and greater than 0";
        errors.push(FieldError::required("spec.maxReplicas", detail));
    }
    if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &json!(most), detail));
    }
    for key in ["kind", "name"] {
        if text(object, &format!("/spec/scaleTargetRef/{key}")).is_empty() {
            errors.push(FieldError::required(format!("spec.scaleTargetRef.{key}"), ""));
        }
    }
    let version = text(object, "/spec/scaleTargetRef/apiVersion");
    if version.is_empty() {
        let detail = "apiVersion must specify API group";
        errors.push(FieldError::invalid(
            "spec.scaleTargetRef.apiVersion",
            &json!(version),
            detail,
        ));
    }
    let metrics: Vec<(String, &Value)> = items(object, "spec.metrics", "/spec/metrics").collect();
    if least == 0
        && !metrics
            .iter()
            .any(|(_, metric)| matches!(text(metric, "/type"), "Object" | "External"))
    {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden("spec.metrics", detail));
    }
    for (at, metric) in metrics {
        let kind = text(metric, "/type");
        let Some((_, source)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            // The original reports it twice.
            for _ in 0..2 {
                one_of(
                    &format!("{at}.type"),
                    kind,
                    &KINDS.map(|(known, _)| known),
                    errors,
                );
            }
            continue;
        };
        let at = format!("{at}.{source}");
        match metric.get(source) {
            None => {
                let detail = "must populate information for the given metric source";
                errors.push(FieldError::required(at, detail));
            }
            Some(given) => source_of(&at, kind, given, errors),
        }
    }
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = object.pointer(&format!("/spec/behavior/{direction}")) {
            behavior(&format!("spec.behavior.{direction}"), rules, errors);
        }
    }
}

fn behavior(at: &str, rules: &Value, errors: &mut Vec<FieldError>) {
    let mut within = |at: String, number: Option<&Value>, least: i64, most: i64| {
        let given = number.cloned().unwrap_or_else(|| json!(0));
        let number = given.as_i64().unwrap_or_default();
        let detail = if number < least {
            format!(
                "must be greater than {}zero",
                if least == 0 { "or equal to " } else { "" }
            )
        } else if number > most {
            format!("must be less than or equal to {most}")
        } else {
            return;
        };
        errors.push(FieldError::invalid(at, &given, detail));
    };
    if let Some(window) = rules.get("stabilizationWindowSeconds") {
        within(format!("{at}.stabilizationWindowSeconds"), Some(window), 0, 3600);
    }
    let policies: Vec<(String, &Value)> = items(rules, &format!("{at}.policies"), "/policies").collect();
    for (at, policy) in &policies {
        within(format!("{at}.value"), policy.get("value"), 1, i64::MAX);
        within(
            format!("{at}.periodSeconds"),
            policy.get("periodSeconds"),
            1,
            1800,
        );
    }
    for (at, policy) in &policies {
        one_of(
            &format!("{at}.type"),
            text(policy, "/type"),
            &["Percent", "Pods"],
            errors,
        );
    }
    if policies.is_empty() && rules.get("policies").is_some() {
        let detail = "must specify at least one Policy";
        errors.push(FieldError::required(format!("{at}.policies"), detail));
    }
    let choice = text(rules, "/selectPolicy");
    if !choice.is_empty() {
        one_of(
            &format!("{at}.selectPolicy"),
            choice,
            &["Disabled", "Max", "Min"],
            errors,
        );
    }
}

/// What a metric measures, and its target.
fn source_of(at: &str, kind: &str, source: &Value, errors: &mut Vec<FieldError>) {
    let target = text(source, "/target/type");
    if !matches!(target, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(
            format!("{at}.target.type"),
            &json!(target),
            detail,
        ));
    }
    let value = source.pointer("/target/value");
    let average = source.pointer("/target/averageValue");
    for (key, amount) in [("value", value), ("averageValue", average)] {
        let number = amount.and_then(Value::as_str).and_then(quantity::number);
        if let Some(amount) = amount.filter(|_| number.is_some_and(|number| number <= 0)) {
            errors.push(FieldError::invalid(
                format!("{at}.target.{key}"),
                amount,
                "must be positive",
            ));
        }
    }
    if matches!(kind, "Object" | "External" | "Pods") {
        let name = text(source, "/metric/name");
        let field = format!("{at}.metric.name");
        if name.is_empty() {
            errors.push(FieldError::required(field, "must specify a metric name"));
        } else if let Some(sign) = ['/', '%'].into_iter().find(|sign| name.contains(*sign)) {
            let detail = format!("may not contain '{sign}'");
            errors.push(FieldError::invalid(field, &json!(name), detail));
        }
    }
    let field = format!("{at}.target.averageValue");
    match kind {
        "Pods" if average.is_none() => {
            errors.push(FieldError::required(
                field,
                "must specify a positive target averageValue",
            ));
        }
        "Object" if value.is_none() && average.is_none() => {
            errors.push(FieldError::required(
                field,
                "must set either a target value or averageValue",
            ));
        }
        "External" if value.is_none() && average.is_none() => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(field, detail));
        }
        "Resource" => resource_target(at, source, errors),
        "ContainerResource" => {
            if text(source, "/container").is_empty() {
                let detail = "must specify a container";
                errors.push(FieldError::required(format!("{at}.container"), detail));
            }
            resource_target(at, source, errors);
        }
        _ => {}
    }
}

/// The target utilization of a resource.
fn resource_target(at: &str, resource: &Value, errors: &mut Vec<FieldError>) {
    let field = format!("{at}.target.averageUtilization");
    let share = resource.pointer("/target/averageUtilization");
    if share.is_none() && resource.pointer("/target/averageValue").is_none() {
        let detail = "must set either a target raw value or a target utilization";
        errors.push(FieldError::required(&field, detail));
    }
    if let Some(share) = share.filter(|share| share.as_i64().is_some_and(|share| share < 1)) {
        errors.push(FieldError::invalid(field, share, "must be greater than 0"));
    }
}
