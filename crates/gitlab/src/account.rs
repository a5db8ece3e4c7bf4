//! The account as which Flux installs a release.
//!
//! A chart is a program of somebody else, and its values are the tenant's: what it may create is decided by an account of
//! the instance's own namespace, and never by Flux's own, which may do everything. The account is bound to one
//! `ClusterRole`, which is shipped with the operator's own rights and grants nothing beyond the namespace. The operator
//! may bind that role and no other.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::watch::MANAGED_BY;

/// The `ClusterRole` of what GitLab's chart creates in a namespace.
pub const ROLE: &str = "stanchion:gitlab-release";
/// The group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";
/// Says for which instance something was made that has no owner.
pub const INSTANCE: &str = "stanchion.dev/gitlab-instance";

/// The name of an instance's account, and of its binding.
pub fn name(instance: &str) -> String {
    format!("{instance}-gitlab-release")
}

/// The account. It has no owner: Flux uninstalls as this account, and skips that without a word when the account is gone.
/// A garbage collector that begins with what an instance owns would take it away too early.
pub fn account(instance: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name(instance), "labels": { INSTANCE: instance } },
        // No pod runs as this account.
        "automountServiceAccountToken": false,
    })
}

/// Its rights.
pub fn binding(instance: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "RoleBinding",
        "metadata": { "name": name(instance), "labels": { INSTANCE: instance } },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE },
        "subjects": [{ "kind": "ServiceAccount", "name": name(instance), "namespace": namespace }],
    })
}

/// Whether the operator made this for the instance. An account that somebody else made under this name may have rights
/// that nobody meant for a chart.
pub fn is_ours(meta: &ObjectMeta, instance: &str) -> bool {
    let label = |name: &str| meta.labels.as_ref()?.get(name).map(String::as_str);
    label(MANAGED_BY.0) == Some(MANAGED_BY.1) && label(INSTANCE) == Some(instance)
}

/// What there is of an instance's account.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The account.
    pub account: Option<ServiceAccount>,
    /// Its binding.
    pub binding: Option<RoleBinding>,
}

impl Found {
    /// What has the name of the account or of its binding, and was made by somebody else.
    pub fn somebody_elses(&self, instance: &str) -> Option<String> {
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

/// What the operator itself needs for that.
pub(crate) fn operator_rules() -> Vec<Rule> {
    const MAKE: &[&str] = &["get", "create", "patch", "delete"];
    vec![
        Rule::new("", &["serviceaccounts"], MAKE),
        Rule::new(RBAC, &["rolebindings"], MAKE),
        Rule::new(RBAC, &["clusterroles"], &["bind"]).named(&[ROLE]),
    ]
}

/// What [`ROLE`] grants: what GitLab's chart creates in a namespace as the operator configures it, and what Helm and Flux
/// need to see of it.
///
/// Left out on purpose, although charts can create them: `NetworkPolicies`, with which a tenant could open what an
/// administrator has closed; `ServiceMonitors`, which can read files of Prometheus; quotas and limits; pods and `exec`;
/// everything without a namespace. Roles and their bindings are in it, because the chart's own Jobs have some: the API
/// server lets nobody put more into them than they have themselves.
pub fn release_rules() -> Vec<Rule> {
    const ALL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    const SEE: &[&str] = &["get", "list", "watch"];
    vec![
        // Helm keeps its releases in Secrets.
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
        // With global.ingress.configureCertmanager and with global.gatewayApi.
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

    /// The role is given to every namespace with an instance: it must not lead out of it.
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
                // Tokens of others, commands in their pods, what closes a namespace, what reads files of others.
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
