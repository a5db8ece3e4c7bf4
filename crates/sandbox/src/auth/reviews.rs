//! `TokenReview`, the `SubjectAccessReviews` and their relatives: requests that are answered and not stored.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rbac::{self, Attributes, Decision};
use super::{MASTERS, User};
use crate::error::ApiError;
use crate::request::Call;
use crate::server::Server;
use crate::store::text;

/// Answers a review; `None` if the resource is not one.
pub(crate) fn review(server: &Server, call: &Call, object: &Value) -> Option<Result<Value, ApiError>> {
    let spec = object.get("spec").cloned().unwrap_or_else(|| json!({}));
    let status = match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("authentication.k8s.io", "tokenreviews") => token(server, &spec),
        ("authentication.k8s.io", "selfsubjectreviews") => json!({"userInfo": call.user.to_value()}),
        ("authorization.k8s.io", "selfsubjectaccessreviews") => access(server, &call.user, &spec),
        ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
            access(server, &subject(&spec), &spec)
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            rules(server, &call.user, text(&spec, "/namespace"))
        }
        _ => return None,
    };
    let mut answer = object.clone();
    answer["metadata"] = json!({});
    if call.resource.plural == "selfsubjectreviews" {
        answer["metadata"] = json!({"creationTimestamp": server.clock.seconds()});
    }
    answer["status"] = status;
    Some(Ok(answer))
}

fn token(server: &Server, spec: &Value) -> Value {
    match server.tokens.user(text(spec, "/token"), server) {
        Some(user) => {
            let audiences = spec
                .get("audiences")
                .cloned()
                .unwrap_or_else(|| json!(["https://kubernetes.default.svc"]));
            json!({"authenticated": true, "user": user.to_value(), "audiences": audiences})
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    }
}

fn subject(spec: &Value) -> User {
    let groups = spec.get("groups").and_then(Value::as_array).into_iter().flatten();
    User {
        name: text(spec, "/user").to_owned(),
        groups: groups
            .filter_map(|group| group.as_str().map(str::to_owned))
            .collect(),
        uid: text(spec, "/uid").to_owned(),
        extra: BTreeMap::new(),
    }
}

fn access(server: &Server, user: &User, spec: &Value) -> Value {
    let attributes = match spec.get("nonResourceAttributes") {
        Some(wanted) => Attributes {
            verb: text(wanted, "/verb"),
            path: Some(text(wanted, "/path")),
            ..Attributes::default()
        },
        None => Attributes {
            verb: text(spec, "/resourceAttributes/verb"),
            group: text(spec, "/resourceAttributes/group"),
            plural: text(spec, "/resourceAttributes/resource"),
            subresource: text(spec, "/resourceAttributes/subresource"),
            namespace: text(spec, "/resourceAttributes/namespace"),
            name: text(spec, "/resourceAttributes/name"),
            path: None,
        },
    };
    match rbac::authorize(server, user, &attributes) {
        Decision::Allowed(reason) if reason.is_empty() => json!({"allowed": true}),
        Decision::Allowed(reason) => json!({"allowed": true, "reason": reason}),
        Decision::Denied(_) => json!({"allowed": false}),
    }
}

fn rules(server: &Server, user: &User, namespace: &str) -> Value {
    let everything = [
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ];
    let all = if user.groups.iter().any(|group| group == MASTERS) || !server.rbac {
        everything.to_vec()
    } else {
        rbac::all_rules(server, user, namespace)
    };
    let (paths, resources): (Vec<Value>, Vec<Value>) = all
        .into_iter()
        .partition(|rule| rule.get("nonResourceURLs").is_some());
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}
