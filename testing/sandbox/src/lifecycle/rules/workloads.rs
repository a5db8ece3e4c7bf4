//! Strategies and numbers of workloads.

use serde_json::{Value, json};

use super::values::{at_most_all, int_or_percent, one_of};
use crate::error::{Fault, FieldError};
use crate::store::text;

fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None => false,
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(value) => value.as_str().and_then(super::values::percent) == Some(0),
    }
}

/// The strategy of a Deployment.
pub(super) fn deployment(object: &Value, errors: &mut Vec<FieldError>) {
    let kind = text(object, "/spec/strategy/type");
    let rolling = object.pointer("/spec/strategy/rollingUpdate");
    match kind {
        "Recreate" if rolling.is_some() => errors.push(FieldError::forbidden(
            "spec.strategy.rollingUpdate",
            "may not be specified when strategy `type` is 'Recreate'",
        )),
        "Recreate" | "" => {}
        "RollingUpdate" => {
            let at = "spec.strategy.rollingUpdate";
            let limit = |key: &str| rolling.and_then(|rolling| rolling.get(key));
            for key in ["maxUnavailable", "maxSurge"] {
                if let Some(value) = limit(key) {
                    int_or_percent(&format!("{at}.{key}"), value, errors);
                }
            }
            if let Some(value) = limit("maxUnavailable") {
                at_most_all(&format!("{at}.maxUnavailable"), value, errors);
                if is_zero(Some(value)) && is_zero(limit("maxSurge")) {
                    let detail = "may not be 0 when `maxSurge` is 0";
                    errors.push(FieldError::invalid(format!("{at}.maxUnavailable"), value, detail));
                }
            }
        }
        other => {
            // Shown with the names of its Go fields.
            let shown = json!({"Type": other, "RollingUpdate": rolling});
            let detail = "supported values: \"Recreate\", \"RollingUpdate\"";
            errors.push(FieldError::new(
                Fault::NotSupported,
                "spec.strategy",
                Some(shown),
                detail,
            ));
        }
    }
    let number = |key: &str| object.pointer(&format!("/spec/{key}")).and_then(Value::as_i64);
    if let Some(deadline) = number("progressDeadlineSeconds")
        && deadline <= number("minReadySeconds").unwrap_or(0)
    {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(
            "spec.progressDeadlineSeconds",
            &json!(deadline),
            detail,
        ));
    }
}

/// Pod management and update strategy of a `StatefulSet`.
pub(super) fn stateful_set(object: &Value, errors: &mut Vec<FieldError>) {
    let policy = text(object, "/spec/podManagementPolicy");
    if !matches!(policy, "" | "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(
            "spec.podManagementPolicy",
            &json!(policy),
            detail,
        ));
    }
    let rolling = object.pointer("/spec/updateStrategy/rollingUpdate");
    match text(object, "/spec/updateStrategy/type") {
        "" | "RollingUpdate" => {}
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let shown = json!({"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")});
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(FieldError::invalid(
                    "spec.updateStrategy.rollingUpdate",
                    &shown,
                    detail,
                ));
            }
        }
        other => {
            let shown = json!({"Type": other, "RollingUpdate": rolling});
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid("spec.updateStrategy", &shown, detail));
        }
    }
}

/// The strategy of a `DaemonSet`.
pub(super) fn daemon_set(object: &Value, errors: &mut Vec<FieldError>) {
    let rolling = object.pointer("/spec/updateStrategy/rollingUpdate");
    match text(object, "/spec/updateStrategy/type") {
        "OnDelete" => {}
        "" | "RollingUpdate" => {
            let limit = |key: &str| rolling.and_then(|rolling| rolling.get(key));
            if is_zero(limit("maxUnavailable")) && limit("maxSurge").is_none_or(|surge| is_zero(Some(surge)))
            {
                let detail = "cannot be 0 when maxSurge is 0";
                let field = "spec.updateStrategy.rollingUpdate.maxUnavailable";
                errors.push(FieldError::required(field, detail));
            }
        }
        other => {
            // Shown with the names of its Go fields.
            let shown = json!({"Type": other, "RollingUpdate": rolling});
            let detail = "supported values: \"RollingUpdate\", \"OnDelete\"";
            errors.push(FieldError::new(
                Fault::NotSupported,
                "spec.updateStrategy",
                Some(shown),
                detail,
            ));
        }
    }
}

/// The counters of a Job.
pub(super) fn job(object: &Value, errors: &mut Vec<FieldError>) {
    let mode = text(object, "/spec/completionMode");
    if !mode.is_empty() {
        one_of("spec.completionMode", mode, &["NonIndexed", "Indexed"], errors);
    }
    let completions = object.pointer("/spec/completions");
    if mode == "Indexed" && completions.is_none_or(Value::is_null) {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required("spec.completions", detail));
    }
}

/// The name, the schedule and the template of a `CronJob`.
pub(super) fn cron_job(object: &Value, errors: &mut Vec<FieldError>) {
    let name = text(object, "/metadata/name");
    if name.len() > 52 {
        // Its Jobs get a suffix of eleven characters.
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::invalid("metadata.name", &json!(name), detail));
    }
    let schedule = text(object, "/spec/schedule");
    let zone = object.pointer("/spec/timeZone").and_then(Value::as_str);
    if schedule.contains("TZ") && zone.is_some() {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid("spec.schedule", &json!(schedule), detail));
    }
    match zone {
        Some("") => {
            let detail = "timeZone must be nil or non-empty string";
            errors.push(FieldError::invalid("spec.timeZone", &json!(""), detail));
        }
        Some(zone) if zone.eq_ignore_ascii_case("local") => {
            let detail =
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
            errors.push(FieldError::invalid("spec.timeZone", &json!(zone), detail));
        }
        _ => {}
    }
    if text(object, "/spec/schedule").is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    }
    let policy = text(object, "/spec/jobTemplate/spec/template/spec/restartPolicy");
    if !matches!(policy, "OnFailure" | "Never") {
        let field = "spec.jobTemplate.spec.template.spec.restartPolicy";
        errors.push(FieldError::required(
            field,
            "valid values: \"OnFailure\", \"Never\"",
        ));
    }
}
