//! Role-based access control with the roles and bindings in the store, so that tests check the roles of a chart by
//! running with them.

use std::sync::Arc;

use serde_json::Value;

use super::User;
use crate::request::{Query, Target, Verb};
use crate::server::Server;
use crate::store::{self, Object, text};

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// The attributes of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Set for non-resource requests.
    pub(crate) path: Option<&'a str>,
}

/// The decision, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed(String),
    /// The complete message, and the part of it that describes a mistake in the bindings.
    Denied {
        why: String,
        reason: String,
    },
}

/// The one object that a field selector leaves: a permission for this name also allows to list and watch it.
fn named_by(selector: &str) -> Option<&str> {
    selector.split(',').find_map(|term| {
        let value = term.trim().strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value)).filter(|name| !name.is_empty())
    })
}

impl<'a> Attributes<'a> {
    pub(crate) fn of(target: &'a Target, verb: Verb, query: &'a Query) -> Self {
        let selected = match verb {
            Verb::List | Verb::Watch if target.name.is_empty() => named_by(query.text("fieldSelector")),
            _ => None,
        };
        Self {
            verb: verb.name(),
            group: &target.group,
            plural: &target.plural,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: selected.unwrap_or(&target.name),
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

    /// The reason for a denial, with the original's message.
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

/// Decides with the bindings of the cluster and of the namespace.
pub(crate) fn authorize(server: &Server, user: &User, wanted: &Attributes<'_>) -> Decision {
    if !server.rbac || user.is_master() {
        return Decision::Allowed(String::new());
    }
    let mut missing = Vec::new();
    for grant in grants(server, user, wanted.namespace) {
        match &grant.role {
            Some(role) if rules(role).any(|rule| wanted.allowed_by(rule)) => {
                return Decision::Allowed(grant.reason());
            }
            Some(_) => {}
            None => missing.push(grant.missing()),
        }
    }
    let denial = wanted.denial(user);
    let reason = match missing.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        many => format!("RBAC: [{}]", many.join(", ")),
    };
    let why = if reason.is_empty() {
        denial
    } else {
        format!("{denial}: {reason}")
    };
    Decision::Denied { why, reason }
}

/// Whether a user has any permission with this verb.
pub(crate) fn may_ever(server: &Server, user: &User, verb: &str) -> bool {
    all_rules(server, user, "").iter().any(|rule| {
        let verbs = rule.get("verbs").and_then(Value::as_array);
        verbs.is_some_and(|verbs| verbs.iter().any(|known| known == verb || known == "*"))
    })
}

/// All permissions of a user in a namespace, for `kubectl auth can-i --list`.
pub(crate) fn all_rules(server: &Server, user: &User, namespace: &str) -> Vec<Value> {
    grants(server, user, namespace)
        .iter()
        .filter_map(|grant| grant.role.as_deref())
        .flat_map(|role| rules(role).cloned().collect::<Vec<_>>())
        .collect()
}

fn rules(role: &Object) -> impl Iterator<Item = &Value> {
    role.value()
        .get("rules")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// A binding that names the user.
struct Grant {
    binding: Arc<Object>,
    /// The subject that matches.
    subject: String,
    /// `None` if the role does not exist.
    role: Option<Arc<Object>>,
}

impl Grant {
    fn reason(&self) -> String {
        let (name, namespace) = (self.binding.name(), self.binding.namespace());
        let binding = if namespace.is_empty() {
            format!("ClusterRoleBinding \"{name}\"")
        } else {
            format!("RoleBinding \"{name}/{namespace}\"")
        };
        format!(
            "RBAC: allowed by {binding} of {} \"{}\" to {}",
            self.binding.text("/roleRef/kind"),
            self.binding.text("/roleRef/name"),
            self.subject
        )
    }

    fn missing(&self) -> String {
        let (kind, name) = (
            self.binding.text("/roleRef/kind"),
            self.binding.text("/roleRef/name"),
        );
        format!("{}.{GROUP} \"{name}\" not found", kind.to_lowercase())
    }
}

/// The bindings that name this user, with their roles.
fn grants(server: &Server, user: &User, namespace: &str) -> Vec<Grant> {
    let list = |plural: &str, place| server.store.list(&format!("{GROUP}/{plural}"), place).objects;
    let mut all = list("clusterrolebindings", None);
    if !namespace.is_empty() {
        all.extend(list("rolebindings", Some(namespace)));
    }
    all.into_iter()
        .filter_map(|(_, binding)| {
            let subject = naming(&binding, user)?;
            let (kind, name) = (binding.text("/roleRef/kind"), binding.text("/roleRef/name"));
            let role = if kind == "ClusterRole" {
                server.store.get(&format!("{GROUP}/clusterroles"), name)
            } else {
                let key = store::key(binding.namespace(), name);
                server.store.get(&format!("{GROUP}/roles"), &key)
            };
            Some(Grant {
                binding,
                subject,
                role,
            })
        })
        .collect()
}

/// The first subject of a binding that matches the user, in the format of messages.
fn naming(binding: &Object, user: &User) -> Option<String> {
    let subjects = binding.value().get("subjects").and_then(Value::as_array)?;
    subjects.iter().find_map(|subject| {
        let name = text(subject, "/name");
        let (is_user, words) = match text(subject, "/kind") {
            "User" => (user.name == name, format!("User \"{name}\"")),
            "Group" => (
                user.groups.iter().any(|group| group == name),
                format!("Group \"{name}\""),
            ),
            _ => {
                let namespace = match text(subject, "/namespace") {
                    "" => binding.namespace(),
                    other => other,
                };
                (
                    user.name == format!("system:serviceaccount:{namespace}:{name}"),
                    format!("ServiceAccount \"{name}/{namespace}\""),
                )
            }
        };
        is_user.then_some(words)
    })
}

#[cfg(test)]
mod tests {
    use super::named_by;

    #[test]
    fn a_field_selector_names_an_object_only_if_it_is_equal() {
        for (selector, name) in [
            ("metadata.name=a", Some("a")),
            ("metadata.name==a", Some("a")),
            ("type=Opaque,metadata.name=a", Some("a")),
            ("metadata.name!=a", None),
            ("metadata.namespace=a", None),
            ("metadata.name=", None),
            ("", None),
        ] {
            assert_eq!(named_by(selector), name, "{selector}");
        }
    }
}
