//! Probes and lifecycle handlers.

use serde_json::{Value, json};

use super::super::values::{items, one_of, port, port_name};
use crate::error::FieldError;
use crate::store::text;

/// The probes and handlers of a container.
pub(super) fn check(
    at: &str,
    pod: &Value,
    container: &Value,
    may_be_probed: bool,
    errors: &mut Vec<FieldError>,
) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let at = format!("{at}.{kind}");
        match container.get(kind) {
            Some(Value::Object(_)) if !may_be_probed => {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(at, detail));
            }
            Some(probe @ Value::Object(_)) => probe_of(&at, kind, probe, errors),
            _ => {}
        }
    }
    for event in ["postStart", "preStop"] {
        let Some(handler) = container.pointer(&format!("/lifecycle/{event}")) else {
            continue;
        };
        let at = format!("{at}.lifecycle.{event}");
        handler_of(&at, handler, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
        let grace = pod
            .get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(30);
        if let Some(seconds) = handler.pointer("/sleep/seconds").and_then(Value::as_i64)
            && !(0..=grace).contains(&seconds)
        {
            let detail =
                format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
            errors.push(FieldError::invalid(
                format!("{at}.sleep"),
                &json!(seconds),
                detail,
            ));
        }
    }
}

fn probe_of(at: &str, kind: &str, probe: &Value, errors: &mut Vec<FieldError>) {
    handler_of(at, probe, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
    for key in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        if let Some(number) = probe
            .get(key)
            .filter(|number| number.as_i64().is_some_and(|number| number < 0))
        {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("{at}.{key}"), number, detail));
        }
    }
    if let Some(grace) = probe.get("terminationGracePeriodSeconds") {
        let detail = match (kind, grace.as_i64()) {
            ("readinessProbe", _) => "must not be set for readinessProbes",
            (_, Some(..=0)) => "must be greater than 0",
            _ => "",
        };
        if !detail.is_empty() {
            let at = format!("{at}.terminationGracePeriodSeconds");
            errors.push(FieldError::invalid(at, grace, detail));
        }
    }
    let successes = probe
        .get("successThreshold")
        .filter(|count| !matches!(count.as_i64(), Some(0 | 1)));
    if let Some(successes) = successes.filter(|_| kind != "readinessProbe") {
        errors.push(FieldError::invalid(
            format!("{at}.successThreshold"),
            successes,
            "must be 1",
        ));
    }
}

/// Exactly one handler, with what it needs.
fn handler_of(at: &str, handler: &Value, kinds: &[&str], errors: &mut Vec<FieldError>) {
    let mut given = kinds.iter().filter_map(|kind| Some((*kind, handler.get(*kind)?)));
    let Some((kind, action)) = given.next() else {
        errors.push(FieldError::required(at, "must specify a handler type"));
        return;
    };
    for (other, _) in given {
        let detail = "may not specify more than 1 handler type";
        errors.push(FieldError::forbidden(format!("{at}.{other}"), detail));
    }
    let at = format!("{at}.{kind}");
    match kind {
        "exec" if items(action, "", "/command").next().is_none() => {
            errors.push(FieldError::required(format!("{at}.command"), ""));
        }
        "httpGet" => {
            port_of(&at, action, errors);
            let scheme = text(action, "/scheme");
            if !scheme.is_empty() {
                one_of(&format!("{at}.scheme"), scheme, &["HTTP", "HTTPS"], errors);
            }
            for (_, header) in items(action, "", "/httpHeaders") {
                let name = text(header, "/name");
                let is_valid =
                    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
                if !is_valid {
                    let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
                    errors.push(FieldError::invalid(
                        format!("{at}.httpHeaders"),
                        &json!(name),
                        detail,
                    ));
                }
            }
        }
        "tcpSocket" | "grpc" => port_of(&at, action, errors),
        _ => {}
    }
}

fn port_of(at: &str, action: &Value, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.port");
    match action.get("port") {
        Some(Value::String(name)) => port_name(&at, name, errors),
        Some(number) => port(&at, number, errors),
        None => port(&at, &json!(0), errors),
    }
}
