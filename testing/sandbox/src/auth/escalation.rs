//! Writes of roles and bindings: a user cannot grant permissions that the user does not have, unless a rule allows to
//! `escalate` or to `bind`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::User;
use super::rbac::{self, Attributes, Decision, GROUP};
use crate::error::{About, ApiError};
use crate::request::Call;
use crate::server::Server;
use crate::store::text;

/// One permission: a verb on a resource of a group, on all objects or on one, or a verb on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Permission<'a> {
    Resource {
        group: &'a str,
        resource: &'a str,
        name: Option<&'a str>,
        verb: &'a str,
    },
    Path {
        path: &'a str,
        verb: &'a str,
    },
}

/// Rejects a role or a binding that grants more than its writer has. `old` is the object before a change.
pub(crate) fn check(
    server: &Server,
    call: &Call,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let resource = &call.resource;
    if resource.group != GROUP || !server.rbac || call.user.is_master() {
        return Ok(());
    }
    if old.is_some_and(|old| only_for_garbage_collection(old, object)) {
        return Ok(());
    }
    let namespace = call.namespace();
    let about = About {
        name: text(object, "/metadata/name"),
        ..call.about()
    };
    let granted = match &*resource.plural {
        "roles" | "clusterroles" => {
            let escalate = Attributes {
                verb: "escalate",
                group: GROUP,
                plural: &resource.plural,
                namespace: &namespace,
                name: &call.target.name,
                ..Attributes::default()
            };
            if allowed(server, &call.user, &escalate) {
                return Ok(());
            }
            if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
                let everything = json!([
                    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                    {"nonResourceURLs": ["*"], "verbs": ["*"]},
                ]);
                let held = rbac::all_rules(server, &call.user, &namespace);
                if !missing(&held, list(&everything)).is_empty() {
                    let why = "must have cluster-admin privileges to use the aggregationRule";
                    return Err(ApiError::forbidden(about, why));
                }
            }
            object.get("rules").map(list).unwrap_or_default().to_vec()
        }
        "rolebindings" | "clusterrolebindings" => {
            let name = text(object, "/roleRef/name");
            let (plural, place) = match text(object, "/roleRef/kind") {
                "ClusterRole" => ("clusterroles", ""),
                _ => ("roles", namespace.as_str()),
            };
            let bind = Attributes {
                verb: "bind",
                group: text(object, "/roleRef/apiGroup"),
                plural,
                namespace: &namespace,
                name,
                ..Attributes::default()
            };
            if allowed(server, &call.user, &bind) {
                return Ok(());
            }
            let role = server
                .store
                .get(&format!("{GROUP}/{plural}"), &crate::store::key(place, name));
            let Some(role) = role else {
                // The original names the resource of the request, not that of the role.
                return Err(ApiError::not_found(About { name, ..about }));
            };
            role.value().get("rules").map(list).unwrap_or_default().to_vec()
        }
        _ => return Ok(()),
    };
    let held = rbac::all_rules(server, &call.user, &namespace);
    let missing = missing(&held, &granted);
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = described(&missing).into_iter().collect();
    let groups: Vec<String> = call
        .user
        .groups
        .iter()
        .map(|group| format!("{group:?}"))
        .collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        call.user.name,
        groups.join(" "),
        lines.join("\n")
    );
    Err(ApiError::forbidden(about, &why))
}

fn allowed(server: &Server, user: &User, wanted: &Attributes<'_>) -> bool {
    matches!(rbac::authorize(server, user, wanted), Decision::Allowed(_))
}

/// The garbage collector may change these fields of roles that it could not grant.
fn only_for_garbage_collection(old: &Value, new: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in [
                "ownerReferences",
                "finalizers",
                "managedFields",
                "resourceVersion",
            ] {
                metadata.shift_remove(field);
            }
        }
        object
    };
    rest(old) == rest(new)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn words<'a>(rule: &'a Value, key: &str) -> Vec<&'a str> {
    let items = rule.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A rule as single permissions.
fn permissions(rule: &Value) -> Vec<Permission<'_>> {
    let names: Vec<Option<&str>> = match words(rule, "resourceNames") {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    let mut all = Vec::new();
    for group in words(rule, "apiGroups") {
        for resource in words(rule, "resources") {
            for verb in words(rule, "verbs") {
                all.extend(names.iter().map(|&name| Permission::Resource {
                    group,
                    resource,
                    name,
                    verb,
                }));
            }
        }
    }
    for path in words(rule, "nonResourceURLs") {
        all.extend(
            words(rule, "verbs")
                .into_iter()
                .map(|verb| Permission::Path { path, verb }),
        );
    }
    all
}

impl Permission<'_> {
    fn is_part_of(&self, rule: &Value) -> bool {
        let has = |key: &str, wanted: &str| {
            words(rule, key)
                .iter()
                .any(|&known| known == "*" || known == wanted)
        };
        match *self {
            Self::Path { path, verb } => {
                let covers = |known: &str| {
                    let start = known.strip_suffix('*');
                    known == path || start.is_some_and(|start| path.starts_with(start))
                };
                has("verbs", verb) && words(rule, "nonResourceURLs").into_iter().any(covers)
            }
            Self::Resource {
                group,
                resource,
                name,
                verb,
            } => {
                let part = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
                let names = words(rule, "resourceNames");
                has("verbs", verb)
                    && has("apiGroups", group)
                    && (has("resources", resource)
                        || part.is_some_and(|part| words(rule, "resources").contains(&&*part)))
                    && (names.is_empty() || name.is_some_and(|name| names.contains(&name)))
            }
        }
    }
}

/// The permissions of some rules that other rules do not contain.
fn missing<'a>(held: &[Value], granted: &'a [Value]) -> Vec<Permission<'a>> {
    let all = granted.iter().flat_map(permissions);
    all.filter(|wanted| !held.iter().any(|rule| wanted.is_part_of(rule)))
        .collect()
}

/// The permissions as the original describes them: one line for all verbs on the same objects.
fn described(missing: &[Permission<'_>]) -> BTreeSet<String> {
    let verbs_on = |target: &Permission<'_>| -> String {
        let same = missing.iter().filter_map(|other| match (target, other) {
            (
                Permission::Resource {
                    group,
                    resource,
                    name,
                    ..
                },
                Permission::Resource {
                    group: other_group,
                    resource: other_resource,
                    name: other_name,
                    verb,
                },
            ) => ((group, resource, name) == (other_group, other_resource, other_name)).then_some(*verb),
            (Permission::Path { .. }, Permission::Path { verb, .. }) => (target == other).then_some(*verb),
            _ => None,
        });
        quoted(&same.collect::<Vec<_>>())
    };
    let line = |target: &Permission<'_>| {
        let verbs = verbs_on(target);
        match target {
            Permission::Path { path, .. } => {
                format!("{{NonResourceURLs:{}, Verbs:{verbs}}}", quoted(&[path]))
            }
            Permission::Resource {
                group,
                resource,
                name,
                ..
            } => {
                let name =
                    name.map_or_else(String::new, |name| format!(", ResourceNames:{}", quoted(&[name])));
                format!(
                    "{{APIGroups:{}, Resources:{}{name}, Verbs:{verbs}}}",
                    quoted(&[group]),
                    quoted(&[resource])
                )
            }
        }
    };
    missing.iter().map(line).collect()
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}
