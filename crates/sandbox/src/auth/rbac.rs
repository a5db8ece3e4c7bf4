//! Role-based access control over the roles and bindings in the store, so that the roles of a chart are tested
//! by running with them.

use serde_json::Value;

use super::User;
use crate::request::{Target, Verb};
use crate::server::Server;
use crate::store::{self, Object, text};

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Set for requests that are not about resources.
    pub(crate) path: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed(String),
    Denied(String),
}

impl<'a> Attributes<'a> {
    pub(crate) fn of(target: &'a Target, verb: Verb) -> Self {
        Self {
            verb: verb.name(),
            group: &target.group,
            plural: &target.plural,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            path: None,
        }
    }

    fn resource(&self) -> String {
        if self.subresource.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}/{}", self.plural, self.subresource)
        }
    }

    /// Why it is denied, in the words of the original.
    fn denial(&self, user: &User) -> String {
        if let Some(path) = self.path {
            return format!("User \"{}\" cannot {} path \"{path}\"", user.name, self.verb);
        }
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        format!(
            "User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {scope}",
            user.name,
            self.verb,
            self.resource(),
            self.group
        )
    }

    fn allowed_by(&self, rule: &Value) -> bool {
        let list = |key: &str| {
            rule.get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
        };
        let names = |key: &str, wanted: &str| list(key).any(|known| known == "*" || known == wanted);
        if !names("verbs", self.verb) {
            return false;
        }
        if let Some(path) = self.path {
            return list("nonResourceURLs").any(|known| {
                known == path
                    || known
                        .strip_suffix('*')
                        .is_some_and(|prefix| path.starts_with(prefix))
            });
        }
        let any_of = format!("*/{}", self.subresource);
        let resource = names("resources", &self.resource())
            || (!self.subresource.is_empty() && list("resources").any(|known| known == any_of));
        let mut restricted = list("resourceNames").peekable();
        names("apiGroups", self.group)
            && resource
            && (restricted.peek().is_none()
                || (!self.name.is_empty() && restricted.any(|known| known == self.name)))
    }
}

/// Decides by the bindings of the cluster and of the namespace.
pub(crate) fn authorize(server: &Server, user: &User, wanted: &Attributes<'_>) -> Decision {
    if !server.rbac || user.is_master() {
        return Decision::Allowed(String::new());
    }
    for (binding, role) in bindings(server, user, wanted.namespace) {
        if rules(&role).any(|rule| wanted.allowed_by(rule)) {
            let kind = if binding.namespace().is_empty() {
                "ClusterRoleBinding"
            } else {
                "RoleBinding"
            };
            let name = store::key(binding.namespace(), binding.name());
            return Decision::Allowed(format!(
                "RBAC: allowed by {kind} \"{name}\" of {} \"{}\" to {}",
                binding.text("/roleRef/kind"),
                binding.text("/roleRef/name"),
                subject(user)
            ));
        }
    }
    Decision::Denied(wanted.denial(user))
}

fn subject(user: &User) -> String {
    match super::service_account(&user.name) {
        Some((namespace, name)) => format!("ServiceAccount \"{name}/{namespace}\""),
        None => format!("User \"{}\"", user.name),
    }
}

/// Everything that somebody may do in a namespace, for `kubectl auth can-i --list`.
pub(crate) fn all_rules(server: &Server, user: &User, namespace: &str) -> Vec<Value> {
    bindings(server, user, namespace)
        .iter()
        .flat_map(|(_, role)| rules(role).cloned().collect::<Vec<_>>())
        .collect()
}

fn rules(role: &Object) -> impl Iterator<Item = &Value> {
    role.value()
        .get("rules")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

type Bound = (std::sync::Arc<Object>, std::sync::Arc<Object>);

/// The bindings that name this user, with the role that each gives.
fn bindings(server: &Server, user: &User, namespace: &str) -> Vec<Bound> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let mut all = server
        .store
        .list(&format!("{GROUP}/clusterrolebindings"), None)
        .objects;
    if !namespace.is_empty() {
        all.extend(
            server
                .store
                .list(&format!("{GROUP}/rolebindings"), Some(namespace))
                .objects,
        );
    }
    all.into_iter()
        .map(|(_, binding)| binding)
        .filter(|binding| names_user(binding, user))
        .filter_map(|binding| {
            let (kind, name) = (binding.text("/roleRef/kind"), binding.text("/roleRef/name"));
            let role = if kind == "ClusterRole" {
                server.store.get(&format!("{GROUP}/clusterroles"), name)
            } else {
                server
                    .store
                    .get(&format!("{GROUP}/roles"), &store::key(binding.namespace(), name))
            };
            Some((binding.clone(), role?))
        })
        .collect()
}

fn names_user(binding: &Object, user: &User) -> bool {
    let subjects = binding
        .value()
        .get("subjects")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    subjects.into_iter().any(|subject| {
        let name = text(subject, "/name");
        match text(subject, "/kind") {
            "User" => user.name == name,
            "Group" => user.groups.iter().any(|group| group == name),
            _ => {
                let namespace = match text(subject, "/namespace") {
                    "" => binding.namespace(),
                    other => other,
                };
                user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
        }
    })
}
