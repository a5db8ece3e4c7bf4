//! Which permissions of the chart the examples use, and what uses the others.

use std::collections::BTreeSet;
use std::path::Path;

use stanchion_testkit::cluster::Request;

use super::super::render::permissions;
use super::super::template;
use super::VALUES;

/// Group, resource, verb.
type Permission = (String, String, String);

/// Permissions that no example uses, one by one, with what uses them.
const ELSEWHERE: &[(&str, &str, &str, &str)] = &[
    (
        "",
        "namespaces",
        "get",
        "a project that needs more than restricted pods",
    ),
    ("", "pods", "list", "a component that is not ready: why"),
    (
        "",
        "secrets",
        "update",
        "a certificate of the webhooks that expires",
    ),
    (
        "authentication.k8s.io",
        "tokenreviews",
        "create",
        "/metrics with a token",
    ),
    ("coordination.k8s.io", "leases", "list", "a standby replica"),
    ("coordination.k8s.io", "leases", "watch", "a standby replica"),
    ("events.k8s.io", "events", "patch", "an event that repeats"),
    (
        "gateway.networking.k8s.io",
        "httproutes",
        "create",
        "spec.gateway, with the CRDs of the Gateway API",
    ),
    (
        "gateway.networking.k8s.io",
        "httproutes",
        "patch",
        "spec.gateway, with the CRDs of the Gateway API",
    ),
    (
        "rbac.authorization.k8s.io",
        "clusterroles",
        "bind",
        "checked with each RoleBinding, and in no log",
    ),
];

/// What uses a permission that no request of the examples shows; `None` if nothing is known to.
fn elsewhere((group, resource, verb): &Permission, used: &BTreeSet<Permission>) -> Option<&'static str> {
    let is_used = |verb: &str| used.contains(&(group.clone(), resource.clone(), verb.to_owned()));
    match verb.as_str() {
        "update" if resource.ends_with("/finalizers") => {
            Some("owner references, where the admission plugin OwnerReferencesPermissionEnforcement is on")
        }
        "list" if is_used("watch") => Some("an API server that cannot stream lists"),
        "get" => Some("a name that is in use, or an object that is newer than the cache"),
        "delete" => Some("an option that is turned off, or an object that is deleted"),
        _ => ELSEWHERE
            .iter()
            .find(|known| (known.0, known.1, known.2) == (group, resource, verb))
            .map(|known| known.3),
    }
}

/// Asserts that each permission of the release is used, by the examples or by something that is known.
pub(super) fn are_used(helm: &Path, requests: &[Request]) {
    let mut used: BTreeSet<Permission> = BTreeSet::new();
    for request in requests.iter().filter(|request| !request.resource.is_empty()) {
        let resource = match request.subresource.as_str() {
            "" => request.resource.clone(),
            part => format!("{}/{part}", request.resource),
        };
        used.insert((request.group.clone(), resource.clone(), request.verb.clone()));
        // To apply an object that does not exist needs both verbs.
        if request.verb == "patch" && request.code == 201 {
            used.insert((request.group.clone(), resource, "create".to_owned()));
        }
    }
    let granted: BTreeSet<Permission> = permissions(&template(helm, &VALUES))
        .into_iter()
        .map(|(_, group, resource, _, verb)| (group, resource, verb))
        .collect();
    let in_vain: Vec<&Permission> = granted
        .difference(&used)
        .filter(|permission| elsewhere(permission, &used).is_none())
        .collect();
    assert!(
        in_vain.is_empty(),
        "the chart grants these, and nothing is known to use them: {in_vain:#?}"
    );
    for (group, resource, verb, what) in ELSEWHERE {
        let permission = ((*group).to_owned(), (*resource).to_owned(), (*verb).to_owned());
        assert!(
            granted.contains(&permission),
            "the chart does not grant {permission:?} any more, for {what}"
        );
    }
}
