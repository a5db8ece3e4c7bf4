//! Which webhooks match a request, and the review that they get.

use std::borrow::Cow;
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Attempt, Operation};
use crate::request::Call;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::server::Server;
use crate::store::text;

/// A webhook that matches a request.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub(crate) name: String,
    /// The version in which the webhook gets the object.
    pub(crate) resource: Arc<Resource>,
    pub(crate) client: Value,
    pub(crate) conditions: Value,
    pub(crate) ignores_failure: bool,
    pub(crate) allows_dry_run: bool,
    pub(crate) seconds: u64,
}

const OWN_GROUP: &str = "admissionregistration.k8s.io";

/// The webhooks of one kind of configuration, in the original's order: by configuration, then as listed.
pub(crate) fn matching(attempt: Attempt<'_>, plural: &str) -> Vec<Webhook> {
    // A configuration must not be able to block its own changes.
    if attempt.call.resource.group == OWN_GROUP {
        return Vec::new();
    }
    let storage = format!("{OWN_GROUP}/{plural}");
    let configurations = attempt.server.store.list(&storage, None).objects;
    let mut found = Vec::new();
    for (_, configuration) in &configurations {
        for webhook in configuration
            .value()
            .get("webhooks")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(resource) = concerns(attempt, webhook, "rules") {
                found.push(Webhook {
                    resource,
                    name: text(webhook, "/name").to_owned(),
                    client: webhook.get("clientConfig").cloned().unwrap_or_default(),
                    conditions: webhook.get("matchConditions").cloned().unwrap_or_default(),
                    ignores_failure: text(webhook, "/failurePolicy") == "Ignore",
                    allows_dry_run: matches!(text(webhook, "/sideEffects"), "None" | "NoneOnDryRun"),
                    seconds: webhook
                        .get("timeoutSeconds")
                        .and_then(Value::as_u64)
                        .unwrap_or(10),
                });
            }
        }
    }
    found
}

/// Whether a webhook or a policy matches this request, by its rules under `key` and its selectors. Returns the version
/// of the resource in the rules: that of the request, or an equivalent one.
pub(crate) fn concerns(attempt: Attempt<'_>, constraints: &Value, key: &str) -> Option<Arc<Resource>> {
    let Attempt {
        server,
        call,
        object,
        old,
        ..
    } = attempt;
    let listed = constraints.get(key).and_then(Value::as_array);
    // The binding of a policy may have no rules of its own.
    let unruled = listed.is_none() && key != "rules";
    let by_rule = |resource: &Resource| {
        let mut rules = listed.into_iter().flatten();
        rules.any(|rule| names_request(attempt, rule, &resource.version))
    };
    let resource = if unruled || by_rule(&call.resource) {
        call.resource.clone()
    } else if text(constraints, "/matchPolicy") == "Exact" {
        return None;
    } else {
        let others = server.registry.others(&call.resource);
        others.into_iter().find(|resource| by_rule(resource))?
    };
    (by_namespace(server, call, object, constraints) && by_object(object, old, constraints))
        .then_some(resource)
}

/// Whether a rule matches the request in this version of its resource.
fn names_request(attempt: Attempt<'_>, rule: &Value, version: &str) -> bool {
    let call = attempt.call;
    let list = |key: &str| {
        let list = rule.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str)
    };
    let names = |key: &str, wanted: &str| list(key).any(|known| known == "*" || known == wanted);
    // A bare `*` does not match subresources; `pods/*` also matches pods.
    let resources = list("resources").any(|known| {
        let (resource, subresource) = known.split_once('/').unwrap_or((known, ""));
        (resource == "*" || resource == call.target.plural)
            && (subresource == "*" || subresource == call.target.subresource)
    });
    let scope = match text(rule, "/scope") {
        "Namespaced" => call.resource.namespaced,
        "Cluster" => !call.resource.namespaced,
        _ => true,
    };
    names("operations", attempt.operation.name())
        && names("apiGroups", &call.target.group)
        && names("apiVersions", version)
        && resources
        && scope
}

/// An object in another version of its resource: only the version's name differs.
pub(crate) fn shown_in<'a>(resource: &Resource, call: &Call, object: &'a Value) -> Cow<'a, Value> {
    if resource.version == call.resource.version || !object.is_object() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object["apiVersion"] = json!(resource.api_version());
    Cow::Owned(object)
}

fn by_namespace(server: &Server, call: &Call, object: &Value, webhook: &Value) -> bool {
    let Some(selector) = webhook.get("namespaceSelector") else {
        return true;
    };
    let selector = Selector::of_labels(selector);
    if &*call.resource.storage == "/namespaces" {
        return selector.matches(object);
    }
    let namespace = call.namespace();
    if namespace.is_empty() {
        return true;
    }
    server
        .store
        .get("/namespaces", &namespace)
        .is_some_and(|namespace| selector.matches(namespace.value()))
}

fn by_object(object: &Value, old: Option<&Value>, webhook: &Value) -> bool {
    let Some(selector) = webhook.get("objectSelector") else {
        return true;
    };
    let selector = Selector::of_labels(selector);
    selector.matches(object) || old.is_some_and(|old| selector.matches(old))
}

/// The review that a webhook gets.
pub(crate) fn review(attempt: Attempt<'_>, shown: &Resource) -> Value {
    let Attempt {
        server,
        call,
        operation,
        object,
        old,
        dry_run,
    } = attempt;
    let kind = |of: &Resource| json!({"group": of.group, "version": of.version, "kind": of.kind});
    let plural = |of: &Resource| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let kind_of_options = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"kind": kind_of_options, "apiVersion": "meta.k8s.io/v1"});
    if dry_run {
        options["dryRun"] = json!(["All"]);
    }
    for key in ["fieldManager", "fieldValidation"] {
        if let Some(value) = call.query.get(key) {
            options[key] = json!(value);
        }
    }
    let mut request = json!({
        "uid": server.clock.uid(), "kind": kind(shown), "resource": plural(shown),
        "requestKind": kind(&call.resource), "requestResource": plural(&call.resource),
        "name": attempt.name(), "operation": operation.name(), "userInfo": call.user.to_value(),
        "object": object, "oldObject": old, "dryRun": dry_run,
        "options": options,
    });
    if shown.namespaced {
        request["namespace"] = json!(call.target.namespace);
    }
    if !call.target.subresource.is_empty() {
        request["subResource"] = json!(call.target.subresource);
        request["requestSubResource"] = json!(call.target.subresource);
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}

/// Applies the patch of a mutating webhook: bytes, which JSON contains in base64 or as a list of numbers.
pub(crate) fn patched(object: &Value, patch: &Value) -> Result<Value, String> {
    let patch = match patch {
        Value::String(text) => STANDARD.decode(text).map_err(|error| error.to_string())?,
        other => serde_json::from_value(other.clone()).map_err(|error| error.to_string())?,
    };
    if patch.is_empty() {
        return Ok(object.clone());
    }
    let patch: json_patch::Patch = serde_json::from_slice(&patch).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| error.to_string())?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_comes_as_text_or_as_numbers() {
        let patch = json!([{"op": "add", "path": "/a", "value": 1}]).to_string();
        let text = json!(STANDARD.encode(&patch));
        let numbers = json!(patch.as_bytes());
        for form in [text, numbers] {
            assert_eq!(patched(&json!({}), &form).unwrap(), json!({"a": 1}));
        }
    }
}
