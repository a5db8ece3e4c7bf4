//! The `ServiceAccount` that Flux installs a release with.
//!
//! A chart is third-party code, and the tenant chooses its values: a `ServiceAccount` in the instance's namespace
//! limits what the chart may create, instead of Flux's own, which may do everything. It is bound to one `ClusterRole`,
//! which is shipped with the operator's own RBAC rules and grants nothing beyond the namespace. The operator may bind
//! that role and no other.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::watch::MANAGED_BY;

/// The `ClusterRole` for what GitLab's chart creates in a namespace.
pub const ROLE: &str = "stanchion:gitlab-release";
/// The API group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";
/// Names the instance of an object that has no owner reference.
pub(crate) const INSTANCE: &str = "stanchion.dev/gitlab-instance";

/// The name of an instance's `ServiceAccount`, and of its binding.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-gitlab-release")
}

/// The `ServiceAccount`. It has no owner reference: Flux uninstalls with this `ServiceAccount`, and silently skips the
/// uninstall if it is gone. Garbage collection could delete it too early.
pub(crate) fn account(instance: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name(instance), "labels": { INSTANCE: instance } },
        // No pod runs with this ServiceAccount.
        "automountServiceAccountToken": false,
    })
}

/// Binds the `ServiceAccount` to its role.
pub(crate) fn binding(instance: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "RoleBinding",
        "metadata": { "name": name(instance), "labels": { INSTANCE: instance } },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE },
        "subjects": [{ "kind": "ServiceAccount", "name": name(instance), "namespace": namespace }],
    })
}

/// Whether the operator created this for the instance. A `ServiceAccount` that somebody else created under this name
/// may have any permissions.
pub(crate) fn is_ours(meta: &ObjectMeta, instance: &str) -> bool {
    let label = |name: &str| meta.labels.as_ref()?.get(name).map(String::as_str);
    label(MANAGED_BY.0) == Some(MANAGED_BY.1) && label(INSTANCE) == Some(instance)
}

/// The existing `ServiceAccount` and binding of an instance.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub account: Option<ServiceAccount>,
    pub binding: Option<RoleBinding>,
}

impl Found {
    /// An object with the name of the `ServiceAccount` or its binding that somebody else created.
    pub(crate) fn somebody_elses(&self, instance: &str) -> Option<String> {
        let metas = [
            ("ServiceAccount", self.account.as_ref().map(Resource::meta)),
            ("RoleBinding", self.binding.as_ref().map(Resource::meta)),
        ];
        let (kind, meta) = metas
            .into_iter()
            .find_map(|(kind, meta)| Some((kind, meta.filter(|meta| !is_ours(meta, instance))?)))?;
        Some(format!("{kind} {}", meta.name.as_deref().unwrap_or_default()))
    }
}

/// The RBAC rules that the operator needs for that.
pub(crate) fn operator_rules() -> Vec<Rule> {
    const MAKE: &[&str] = &["get", "create", "patch", "delete"];
    vec![
        Rule::new("", &["serviceaccounts"], MAKE),
        Rule::new(RBAC, &["rolebindings"], MAKE),
        Rule::new(RBAC, &["clusterroles"], &["bind"]).named(&[ROLE]),
    ]
}

/// The rules of [`ROLE`]: what GitLab's chart creates in a namespace with the operator's values, and what Helm and Flux
/// need to read.
///
/// Intentionally left out, although charts can create them: `NetworkPolicies`, with which a tenant could open what an
/// administrator has closed; `ServiceMonitors`, which can read files of Prometheus; quotas and limits; pods and `exec`;
/// everything without a namespace. Roles and their bindings are included, because the chart's own Jobs have some: the
/// API server prevents privilege escalation by them.
pub fn release_rules() -> Vec<Rule> {
    const ALL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    const SEE: &[&str] = &["get", "list", "watch"];
    vec![
        // Helm stores its releases in Secrets.
        Rule::new(
            "",
            &[
                "configmaps",
                "persistentvolumeclaims",
                "secrets",
                "serviceaccounts",
                "services",
            ],
            ALL,
        ),
        Rule::new("apps", &["deployments", "statefulsets"], ALL),
        Rule::new("batch", &["cronjobs", "jobs"], ALL),
        Rule::new("autoscaling", &["horizontalpodautoscalers"], ALL),
        Rule::new("policy", &["poddisruptionbudgets"], ALL),
        Rule::new("networking.k8s.io", &["ingresses"], ALL),
        Rule::new(RBAC, &["rolebindings", "roles"], ALL),
        // For global.ingress.configureCertmanager and global.gatewayApi.
        Rule::new("cert-manager.io", &["issuers"], ALL),
        Rule::new(
            "gateway.networking.k8s.io",
            &["gateways", "httproutes", "tcproutes"],
            ALL,
        ),
        // To wait until everything runs.
        Rule::new("", &["endpoints", "events", "pods"], SEE),
        Rule::new("apps", &["controllerrevisions", "replicasets"], SEE),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every namespace with an instance gets the role: it must not grant anything outside of the namespace.
    #[test]
    fn the_role_grants_nothing_beyond_a_namespace_and_no_way_to_more() {
        for rule in release_rules() {
            let words: Vec<&str> = rule
                .resources
                .iter()
                .map(String::as_str)
                .chain(rule.verbs.iter().copied())
                .chain([rule.group.as_ref()])
                .collect();
            for word in &words {
                assert!(!word.contains('*'), "{rule:?}");
                assert!(
                    !["bind", "escalate", "impersonate", "deletecollection"].contains(word),
                    "{rule:?}"
                );
                // No tokens or commands in other pods, nothing that restricts a namespace, nothing that reads files of
                // others.
                assert!(
                    !word.contains('/')
                        && !["networkpolicies", "resourcequotas", "limitranges"].contains(word),
                    "{rule:?}"
                );
            }
            assert!(!rule.cluster_wide, "{rule:?}");
            for group in ["helm.toolkit", "source.toolkit", "monitoring", "k8s.bnerd"] {
                assert!(!rule.group.starts_with(group), "{rule:?}");
            }
            for resource in &rule.resources {
                assert!(
                    ![
                        "clusterroles",
                        "clusterrolebindings",
                        "ingressclasses",
                        "nodes",
                        "namespaces"
                    ]
                    .contains(&resource.as_str()),
                    "{rule:?}"
                );
            }
        }
    }

    #[test]
    fn the_operator_may_bind_this_one_role() {
        let rules = operator_rules();
        let binds: Vec<_> = rules
            .iter()
            .filter(|rule| rule.verbs.contains(&"bind"))
            .map(|rule| (rule.resources.clone(), rule.names.clone()))
            .collect();
        assert_eq!(binds, [(vec!["clusterroles".to_owned()], vec![ROLE.to_owned()])]);
    }

    #[test]
    fn what_somebody_else_made_is_recognised() {
        let made = |labels: Value| -> Found {
            let meta = json!({ "name": "shop-gitlab-release", "labels": labels });
            Found {
                account: serde_json::from_value(json!({ "metadata": meta })).unwrap(),
                binding: None,
            }
        };
        let ours = json!({ MANAGED_BY.0: MANAGED_BY.1, INSTANCE: "shop" });
        assert_eq!(made(ours.clone()).somebody_elses("shop"), None);
        assert_eq!(Found::default().somebody_elses("shop"), None);
        for labels in [
            json!({}),
            json!({ MANAGED_BY.0: MANAGED_BY.1 }),
            json!({ INSTANCE: "shop" }),
        ] {
            assert_eq!(
                made(labels).somebody_elses("shop").unwrap(),
                "ServiceAccount shop-gitlab-release"
            );
        }
        assert!(made(ours).somebody_elses("other").is_some());
    }
}
