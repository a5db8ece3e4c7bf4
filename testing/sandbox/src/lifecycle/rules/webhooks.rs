//! Webhook configurations.

use kube_cel::compile_schema;
use serde_json::{Value, json};

use super::values::{items, one_of, selector};
use crate::error::{Fault, FieldError};
use crate::store::text;

/// All errors of a configuration's webhooks.
pub(super) fn check(object: &Value, errors: &mut Vec<FieldError>) {
    let mut names: Vec<&str> = Vec::new();
    for (at, webhook) in items(object, "webhooks", "/webhooks") {
        let name = text(webhook, "/name");
        if name.split('.').count() < 3 || name.split('.').any(str::is_empty) {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(format!("{at}.name"), &json!(name), detail));
        } else if names.contains(&name) {
            errors.push(FieldError::new(
                Fault::Duplicate,
                format!("{at}.name"),
                Some(json!(name)),
                "",
            ));
        }
        names.push(name);
        words(&at, webhook, errors);
        for key in ["namespaceSelector", "objectSelector"] {
            if let Some(given) = webhook.get(key) {
                selector(&format!("{at}.{key}"), given, errors);
            }
        }
        client(
            &format!("{at}.clientConfig"),
            webhook.get("clientConfig").unwrap_or(&Value::Null),
            errors,
        );
        for (at, rule) in items(webhook, &format!("{at}.rules"), "/rules") {
            self::rule(&at, rule, errors);
        }
        for (at, condition) in items(webhook, &format!("{at}.matchConditions"), "/matchConditions") {
            let expression = text(condition, "/expression");
            let alone = json!({"type": "object", "x-kubernetes-validations": [{"rule": expression}]});
            for error in compile_schema(&alone).compilation_errors() {
                let detail = format!("compilation failed: {error}");
                errors.push(FieldError::invalid(
                    format!("{at}.expression"),
                    &json!(expression),
                    detail,
                ));
            }
        }
    }
}

/// Fields with a fixed set of values, and required fields.
fn words(at: &str, webhook: &Value, errors: &mut Vec<FieldError>) {
    for (key, known) in [
        ("failurePolicy", ["Fail", "Ignore"]),
        ("matchPolicy", ["Equivalent", "Exact"]),
        ("reinvocationPolicy", ["IfNeeded", "Never"]),
        ("sideEffects", ["None", "NoneOnDryRun"]),
    ] {
        let word = text(webhook, &format!("/{key}"));
        if !word.is_empty() {
            one_of(&format!("{at}.{key}"), word, &known, errors);
        } else if key == "sideEffects" {
            let detail = "must specify one of None, NoneOnDryRun";
            errors.push(FieldError::required(format!("{at}.{key}"), detail));
        }
    }
    if let Some(seconds) = webhook.get("timeoutSeconds")
        && !seconds
            .as_i64()
            .is_some_and(|seconds| (1..=30).contains(&seconds))
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(
            format!("{at}.timeoutSeconds"),
            seconds,
            detail,
        ));
    }
    let versions = webhook.get("admissionReviewVersions");
    let list = versions.and_then(Value::as_array).filter(|list| !list.is_empty());
    let field = format!("{at}.admissionReviewVersions");
    match list {
        None => errors.push(FieldError::required(field, "must specify one of v1, v1beta1")),
        Some(list)
            if !list
                .iter()
                .any(|version| *version == json!("v1") || *version == json!("v1beta1")) =>
        {
            let detail = "must include at least one of v1, v1beta1";
            errors.push(FieldError::invalid(field, &json!(list), detail));
        }
        Some(_) => {}
    }
}

/// The URL or the Service of a webhook.
fn client(at: &str, config: &Value, errors: &mut Vec<FieldError>) {
    let (url, service) = (config.get("url").and_then(Value::as_str), config.get("service"));
    if url.is_some() == service.is_some() {
        let detail = "exactly one of url or service is required";
        return errors.push(FieldError::required(at, detail));
    }
    if let Some(url) = url
        && !url.starts_with("https://")
    {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        errors.push(FieldError::invalid(format!("{at}.url"), &json!(scheme), detail));
    }
    let Some(service) = service else { return };
    // The original calls either of the two a name.
    if text(service, "/name").is_empty() || text(service, "/namespace").is_empty() {
        errors.push(FieldError::required(format!("{at}.service.name"), ""));
    }
    let path = text(service, "/path");
    if !path.is_empty() && !path.starts_with('/') {
        let detail = "must start with a '/'";
        errors.push(FieldError::invalid(
            format!("{at}.service.path"),
            &json!(path),
            detail,
        ));
    }
    if let Some(port) = service.get("port")
        && !port.as_i64().is_some_and(|port| (1..=65535).contains(&port))
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{at}.service.port"), port, detail));
    }
}

/// The rules of a webhook.
fn rule(at: &str, rule: &Value, errors: &mut Vec<FieldError>) {
    for (key, others) in [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
        ("resources", "resources without subresources"),
    ] {
        let field = format!("{at}.{key}");
        let list = rule
            .get(key)
            .and_then(Value::as_array)
            .filter(|list| !list.is_empty());
        let Some(list) = list else {
            errors.push(FieldError::required(field, ""));
            continue;
        };
        let is_plain = |item: &&Value| key != "resources" || !item.as_str().unwrap_or_default().contains('/');
        if list.contains(&json!("*")) && list.iter().filter(is_plain).count() > 1 {
            let detail = format!("if '*' is present, must not specify other {others}");
            errors.push(FieldError::invalid(field, &json!(list), detail));
        }
    }
    for (at, operation) in items(rule, &format!("{at}.operations"), "/operations") {
        let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        one_of(&at, operation.as_str().unwrap_or_default(), &known, errors);
    }
    let scope = text(rule, "/scope");
    if !scope.is_empty() {
        one_of(
            &format!("{at}.scope"),
            scope,
            &["*", "Cluster", "Namespaced"],
            errors,
        );
    }
}
