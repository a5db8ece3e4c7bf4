//! Where a pod may run: selectors, affinities, tolerations, spread.

use serde_json::{Value, json};

use super::super::super::names;
use super::super::values::{items, one_of, selector};
use crate::error::{Fault, FieldError};
use crate::store::text;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// All errors of a pod's placement.
pub(super) fn check(at: &str, pod: &Value, errors: &mut Vec<FieldError>) {
    let labels = pod.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        let at = format!("{at}.nodeSelector");
        names::check_key(key, &at, errors);
        names::check_label_value(value, &at, errors);
    }
    nodes(
        &format!("{at}.affinity.nodeAffinity"),
        pod.pointer("/affinity/nodeAffinity"),
        errors,
    );
    for kind in ["podAffinity", "podAntiAffinity"] {
        let given = pod.pointer(&format!("/affinity/{kind}"));
        pods(&format!("{at}.affinity.{kind}"), given, errors);
    }
    for (at, toleration) in items(pod, &format!("{at}.tolerations"), "/tolerations") {
        tolerates(&at, toleration, errors);
    }
    spread(at, pod, errors);
}

fn nodes(at: &str, affinity: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(affinity) = affinity else { return };
    if let Some(required) = affinity.get(REQUIRED) {
        let at = format!("{at}.{REQUIRED}.nodeSelectorTerms");
        let terms: Vec<(String, &Value)> = items(required, &at, "/nodeSelectorTerms").collect();
        if terms.is_empty() {
            errors.push(FieldError::required(
                at,
                "must have at least one node selector term",
            ));
        }
        for (at, term) in terms {
            node_term(&at, term, errors);
        }
    }
    for (at, preferred) in items(affinity, &format!("{at}.{PREFERRED}"), &format!("/{PREFERRED}")) {
        weight(&at, preferred, errors);
        if let Some(term) = preferred.get("preference") {
            node_term(&format!("{at}.preference"), term, errors);
        }
    }
}

fn node_term(at: &str, term: &Value, errors: &mut Vec<FieldError>) {
    for (at, expression) in items(term, &format!("{at}.matchExpressions"), "/matchExpressions") {
        let count = items(expression, "", "/values").count();
        match text(expression, "/operator") {
            "In" | "NotIn" if count == 0 => errors.push(FieldError::required(
                format!("{at}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if count > 0 => errors.push(FieldError::forbidden(
                format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "Gt" | "Lt" if count != 1 => errors.push(FieldError::required(
                format!("{at}.values"),
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.push(FieldError::invalid(
                format!("{at}.operator"),
                &json!(other),
                "not a valid selector operator",
            )),
        }
        names::check_key(text(expression, "/key"), &format!("{at}.key"), errors);
    }
}

fn weight(at: &str, preferred: &Value, errors: &mut Vec<FieldError>) {
    let weight = preferred.get("weight").cloned().unwrap_or_else(|| json!(0));
    if !weight.as_i64().is_some_and(|weight| (1..=100).contains(&weight)) {
        let detail = "must be in the range 1-100";
        errors.push(FieldError::invalid(format!("{at}.weight"), &weight, detail));
    }
}

fn pods(at: &str, affinity: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(affinity) = affinity else { return };
    for (at, term) in items(affinity, &format!("{at}.{REQUIRED}"), &format!("/{REQUIRED}")) {
        pod_term(&at, term, errors);
    }
    for (at, preferred) in items(affinity, &format!("{at}.{PREFERRED}"), &format!("/{PREFERRED}")) {
        weight(&at, preferred, errors);
        if let Some(term) = preferred.get("podAffinityTerm") {
            pod_term(&format!("{at}.podAffinityTerm"), term, errors);
        }
    }
}

fn pod_term(at: &str, term: &Value, errors: &mut Vec<FieldError>) {
    for key in ["labelSelector", "namespaceSelector"] {
        if let Some(given) = term.get(key) {
            selector(&format!("{at}.{key}"), given, errors);
        }
    }
    let key = text(term, "/topologyKey");
    let at = format!("{at}.topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&at, "can not be empty"));
    }
    names::check_key(key, &at, errors);
}

fn tolerates(at: &str, toleration: &Value, errors: &mut Vec<FieldError>) {
    let (key, value, effect) = (
        text(toleration, "/key"),
        text(toleration, "/value"),
        text(toleration, "/effect"),
    );
    let operator = text(toleration, "/operator");
    let field = format!("{at}.operator");
    if !key.is_empty() {
        names::check_key(key, &format!("{at}.key"), errors);
    } else if operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&field, &json!(operator), detail));
    }
    match operator {
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(field, &json!(value), detail));
        }
        "" | "Equal" | "Exists" => {}
        other => one_of(&field, other, &["Equal", "Exists"], errors),
    }
    let field = format!("{at}.effect");
    if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&field, &json!(effect), detail));
    }
    if !effect.is_empty() {
        let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        one_of(&field, effect, &known, errors);
    }
}

fn spread(at: &str, pod: &Value, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.topologySpreadConstraints");
    let constraints: Vec<(String, &Value)> = items(pod, &at, "/topologySpreadConstraints").collect();
    for (index, (at, constraint)) in constraints.iter().enumerate() {
        for key in ["maxSkew", "minDomains"] {
            if let Some(number) = constraint
                .get(key)
                .filter(|number| number.as_i64().is_some_and(|number| number < 1))
            {
                errors.push(FieldError::invalid(
                    format!("{at}.{key}"),
                    number,
                    "must be greater than zero",
                ));
            }
        }
        let (key, otherwise) = (
            text(constraint, "/topologyKey"),
            text(constraint, "/whenUnsatisfiable"),
        );
        let field = format!("{at}.topologyKey");
        if key.is_empty() {
            errors.push(FieldError::required(field, "can not be empty"));
        } else {
            names::check_key(key, &field, errors);
        }
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        one_of(&format!("{at}.whenUnsatisfiable"), otherwise, &known, errors);
        let later = constraints.iter().skip(index + 1);
        let is_same = |other: &Value| {
            text(other, "/topologyKey") == key && text(other, "/whenUnsatisfiable") == otherwise
        };
        if later.clone().any(|(_, other)| is_same(other)) {
            let shown = json!(format!("{{{key}, {otherwise}}}"));
            let field = format!("{at}.{{topologyKey, whenUnsatisfiable}}");
            errors.push(FieldError::new(Fault::Duplicate, field, Some(shown), ""));
        }
        if let Some(given) = constraint.get("labelSelector") {
            selector(&format!("{at}.labelSelector"), given, errors);
        }
    }
}
