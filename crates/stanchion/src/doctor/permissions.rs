//! RBAC as the authorizer evaluates it: the single permissions of an account.

use std::collections::BTreeSet;

use serde_json::Value;

/// A permission: namespace (`*` for all), group, resource, object (empty for all), verb.
pub(super) type Permission = (String, String, String, String, String);

/// The permissions of a `ServiceAccount`.
pub(super) fn of(objects: &[Value], namespace: &str, account: &str) -> BTreeSet<Permission> {
    let text = |object: &Value, pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let bindings = objects
        .iter()
        .filter(|object| text(object, "/kind").ends_with("RoleBinding"));
    let bound = bindings.filter(|binding| {
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.into_iter().any(|subject| {
            subject["kind"] == "ServiceAccount"
                && subject["name"] == account
                && subject["namespace"] == namespace
        })
    });
    let mut permissions = BTreeSet::new();
    for binding in bound {
        let place = if binding["kind"] == "ClusterRoleBinding" {
            "*".to_owned()
        } else {
            text(binding, "/metadata/namespace")
        };
        let role = objects.iter().find(|object| {
            let same = |pointer: &str, of: &str| object.pointer(pointer) == binding.pointer(of);
            let everywhere = text(object, "/kind") == "ClusterRole";
            same("/kind", "/roleRef/kind")
                && same("/metadata/name", "/roleRef/name")
                && (everywhere || same("/metadata/namespace", "/metadata/namespace"))
        });
        permissions.extend(role.into_iter().flat_map(|role| expand(role, &place)));
    }
    permissions
}

/// The rules of one role as single permissions.
pub(super) fn expand(role: &Value, place: &str) -> Vec<Permission> {
    let words = |rule: &Value, field: &str| -> Vec<String> {
        let list = rule.get(field).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect()
    };
    let mut permissions = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let mut names = words(rule, "resourceNames");
        if names.is_empty() {
            names.push(String::new());
        }
        for group in words(rule, "apiGroups") {
            for resource in words(rule, "resources") {
                for name in &names {
                    for verb in words(rule, "verbs") {
                        permissions.push((
                            place.to_owned(),
                            group.clone(),
                            resource.clone(),
                            name.clone(),
                            verb,
                        ));
                    }
                }
            }
        }
    }
    permissions
}

/// Whether the account has this permission, through an exact or a wider rule.
pub(super) fn has(permissions: &BTreeSet<Permission>, permission: &Permission) -> bool {
    let either = |exact: &str, all: &str| [exact.to_owned(), all.to_owned()];
    either(&permission.0, "*").into_iter().any(|place| {
        either(&permission.1, "*").into_iter().any(|group| {
            either(&permission.2, "*").into_iter().any(|resource| {
                either(&permission.3, "").into_iter().any(|name| {
                    either(&permission.4, "*").into_iter().any(|verb| {
                        permissions.contains(&(
                            place.clone(),
                            group.clone(),
                            resource.clone(),
                            name.clone(),
                            verb,
                        ))
                    })
                })
            })
        })
    })
}

/// For people: `get,list secrets in team-a`.
pub(super) fn words(permissions: &[&Permission]) -> String {
    const SHOWN: usize = 5;
    let mut texts: Vec<String> = permissions
        .iter()
        .take(SHOWN)
        .map(|(place, group, resource, name, verb)| {
            let group = if group.is_empty() {
                String::new()
            } else {
                format!(".{group}")
            };
            let name = if name.is_empty() {
                String::new()
            } else {
                format!(" \"{name}\"")
            };
            let place = if place == "*" {
                "everywhere".to_owned()
            } else {
                format!("in {place}")
            };
            format!("{verb} {resource}{group}{name} {place}")
        })
        .collect();
    if permissions.len() > SHOWN {
        texts.push(format!("and {} more", permissions.len() - SHOWN));
    }
    texts.join("; ")
}
