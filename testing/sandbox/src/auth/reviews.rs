//! `TokenReview`, the `SubjectAccessReviews` and similar requests that are answered and not stored.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::User;
use super::rbac::{self, Attributes, Decision};
use super::tokens::AUDIENCE;
use crate::error::{About, ApiError, FieldError};
use crate::request::Call;
use crate::server::Server;
use crate::store::text;

/// Answers a review; `None` if the resource is not a review.
pub(crate) fn review(server: &Server, call: &Call, object: &Value) -> Option<Result<Value, ApiError>> {
    let spec = object.get("spec").cloned().unwrap_or_else(|| json!({}));
    let status = match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("authentication.k8s.io", "tokenreviews") => token(server, &spec),
        ("authentication.k8s.io", "selfsubjectreviews") => Ok(json!({"userInfo": call.user.to_value()})),
        ("authorization.k8s.io", "selfsubjectaccessreviews") => access(server, call, &call.user, object),
        ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
            access(server, call, &subject(&spec), object)
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            rules(server, &call.user, text(&spec, "/namespace"))
        }
        _ => return None,
    };
    Some(status.map(|status| {
        let mut answer = object.clone();
        let metadata = answer.get("metadata").filter(|metadata| metadata.is_object());
        answer["metadata"] = metadata.cloned().unwrap_or_else(|| json!({}));
        match call.resource.plural.as_str() {
            "selfsubjectreviews" => answer["metadata"] = json!({"creationTimestamp": server.clock.seconds()}),
            "selfsubjectrulesreviews" => answer["spec"] = json!({}),
            _ => {}
        }
        answer["status"] = status;
        answer
    }))
}

fn token(server: &Server, spec: &Value) -> Result<Value, ApiError> {
    let token = text(spec, "/token");
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences = words(spec, "audiences");
    let audiences = if audiences.is_empty() {
        vec![AUDIENCE.to_owned()]
    } else {
        audiences
    };
    Ok(match server.tokens.review(token, &audiences, server) {
        Ok((user, audiences)) => {
            json!({"authenticated": true, "user": user.to_value(), "audiences": audiences})
        }
        Err(why) => json!({"user": {}, "error": why}),
    })
}

fn words(spec: &Value, key: &str) -> Vec<String> {
    let list = spec.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn subject(spec: &Value) -> User {
    User {
        name: text(spec, "/user").to_owned(),
        groups: words(spec, "groups"),
        uid: text(spec, "/uid").to_owned(),
        extra: BTreeMap::new(),
    }
}

fn access(server: &Server, call: &Call, user: &User, object: &Value) -> Result<Value, ApiError> {
    let errors = mistakes(call, user, object);
    if !errors.is_empty() {
        // The original omits the kind here.
        let about = About {
            group: &call.resource.group,
            kind: "",
            name: "",
        };
        return Err(ApiError::invalid(about, &errors));
    }
    let attribute = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let attributes = match object.pointer("/spec/nonResourceAttributes") {
        Some(_) => Attributes {
            verb: attribute("/spec/nonResourceAttributes/verb"),
            path: Some(attribute("/spec/nonResourceAttributes/path")),
            ..Attributes::default()
        },
        None => Attributes {
            verb: attribute("/spec/resourceAttributes/verb"),
            group: attribute("/spec/resourceAttributes/group"),
            plural: attribute("/spec/resourceAttributes/resource"),
            subresource: attribute("/spec/resourceAttributes/subresource"),
            namespace: attribute("/spec/resourceAttributes/namespace"),
            name: attribute("/spec/resourceAttributes/name"),
            path: None,
        },
    };
    let (allowed, reason) = match rbac::authorize(server, user, &attributes) {
        Decision::Allowed(reason) => (true, reason),
        Decision::Denied { reason, .. } => (false, reason),
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    Ok(status)
}

/// The validation errors of an access review.
fn mistakes(call: &Call, user: &User, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let local = call.resource.plural == "localsubjectaccessreviews";
    let at = |path: &str| object.pointer(path).filter(|value| !value.is_null());
    match (at("/spec/resourceAttributes"), at("/spec/nonResourceAttributes")) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            &in_go(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        (None, Some(path)) if local => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            &in_go(path),
            "disallowed on this kind of request",
        )),
        _ => {}
    }
    let own = call.resource.plural == "selfsubjectaccessreviews";
    if !own && user.name.is_empty() && user.groups.is_empty() {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), detail));
    }
    if local {
        let namespace = text(object, "/spec/resourceAttributes/namespace");
        if at("/spec/resourceAttributes").is_some() && namespace != call.target.namespace {
            let detail = "must match metadata.namespace";
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, &json!(namespace), detail));
        }
    } else if let Some(metadata) = at("/metadata").filter(|metadata| *metadata != &json!({})) {
        errors.push(FieldError::invalid("metadata", metadata, "must be empty"));
    }
    errors
}

/// The original shows this one with the names of its Go fields.
fn in_go(path: &Value) -> Value {
    json!({"Path": text(path, "/path"), "Verb": text(path, "/verb")})
}

fn rules(server: &Server, user: &User, namespace: &str) -> Result<Value, ApiError> {
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let everything = [
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ];
    let mut all = rbac::all_rules(server, user, namespace);
    if user.is_master() || !server.rbac {
        all.extend(
            everything
                .into_iter()
                .filter(|rule| !all.contains(rule))
                .collect::<Vec<_>>(),
        );
    }
    let (paths, resources): (Vec<Value>, Vec<Value>) = all
        .into_iter()
        .partition(|rule| rule.get("nonResourceURLs").is_some());
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}
