//! `stanchion rbac`: the minimal RBAC manifests, from what the code declares.
//!
//! For the whole cluster they contain one `ClusterRole`. For some namespaces they contain a Role in each, and a
//! `ClusterRole` only for cluster-scoped resources. In its own namespace the operator also has a Lease and a
//! certificate, with fixed names.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::ObjectMeta;
use serde::Serialize;
use serde_json::Value;
use stanchion_kernel::rbac::{Rule, merge};
use stanchion_kernel::redact::install_key_rules;
use stanchion_kernel::telemetry::guard;
use stanchion_kernel::{admission, lease};
use thiserror::Error;

use crate::controllers::Choice;
use crate::output::{self, OutputError};
use crate::{run, yaml};

/// Arguments of `stanchion rbac`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    controllers: Choice,
    /// Namespace to watch; can be repeated. Default: the whole cluster
    #[arg(long, env = "STANCHION_NAMESPACE", value_name = "NS", value_delimiter = ',')]
    namespace: Vec<String>,
    /// `ServiceAccount` of the operator
    #[arg(
        long,
        env = "STANCHION_SERVICE_ACCOUNT",
        value_name = "NS/NAME",
        default_value_t
    )]
    service_account: Account,
}

impl Arguments {
    /// For the whole cluster, and the operator's default account.
    pub(crate) fn cluster_wide(controllers: Choice) -> Self {
        Self {
            controllers,
            namespace: Vec::new(),
            service_account: Account::default(),
        }
    }

    /// For some controllers in some namespaces (empty for all), and an account by its namespace and name.
    pub(crate) fn for_account(controllers: Choice, namespaces: &[&str], account: (&str, &str)) -> Self {
        Self {
            controllers,
            namespace: namespaces.iter().map(ToString::to_string).collect(),
            service_account: Account {
                namespace: account.0.to_owned(),
                name: account.1.to_owned(),
            },
        }
    }

    /// The namespace of the operator's account and pods.
    pub(crate) fn operator_namespace(&self) -> &str {
        &self.service_account.namespace
    }

    /// The name of that account.
    pub(crate) fn service_account_name(&self) -> &str {
        &self.service_account.name
    }

    /// The matching arguments of `stanchion run`.
    pub(crate) fn scope(&self) -> Vec<String> {
        let controllers = self
            .controllers
            .chosen()
            .map(|name| format!("--controllers={name}"));
        let namespaces = self.namespace.iter().map(|name| format!("--namespace={name}"));
        controllers.chain(namespaces).collect()
    }
}

/// A `ServiceAccount`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    namespace: String,
    name: String,
}

/// The default namespace of the operator.
pub(crate) const NAMESPACE: &str = "stanchion-system";
/// The default `ServiceAccount` of the operator.
pub(crate) const SERVICE_ACCOUNT: &str = "stanchion";

impl Default for Account {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.into(),
            name: SERVICE_ACCOUNT.into(),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The text is not a `ServiceAccount`.
#[derive(Debug, Error)]
#[error("a service account is written NAMESPACE/NAME")]
struct AccountError;

impl FromStr for Account {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, AccountError> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(AccountError),
        }
    }
}

/// Why the manifests could not be printed.
#[derive(Debug, Error)]
pub(crate) enum RbacError {
    /// An object cannot be serialized.
    #[error("cannot serialize the RBAC manifests: {0}")]
    Json(#[from] serde_json::Error),
    /// An object cannot be written as YAML.
    #[error("cannot write the RBAC manifests as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// The manifests cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Prints the manifests.
pub(crate) fn run(arguments: &Arguments) -> Result<(), RbacError> {
    Ok(output::print(&yaml::stream(&objects(arguments)?)?)?)
}

/// The manifests of all controllers for the whole cluster.
pub(crate) fn everything() -> Result<String, RbacError> {
    Ok(yaml::stream(&cluster_wide(Choice::everything())?)?)
}

/// The manifests of some controllers for the whole cluster, as objects.
pub(crate) fn cluster_wide(controllers: Choice) -> Result<Vec<Value>, serde_json::Error> {
    objects(&Arguments::cluster_wide(controllers))
}

/// The manifests, as objects.
pub(crate) fn objects(arguments: &Arguments) -> Result<Vec<Value>, serde_json::Error> {
    let account = &arguments.service_account;
    let rules: Vec<Rule> = arguments
        .controllers
        .rows()
        .flat_map(|row| (row.rules)())
        .collect();
    // Webhooks review the objects of every system.
    let webhooks = arguments.controllers.rows().next().is_some();

    let mut objects = Objects::new(account);
    objects.push(&ServiceAccount {
        metadata: metadata(&account.name, Some(&account.namespace)),
        ..ServiceAccount::default()
    })?;

    let registration = run::registration_name(&account.namespace);
    let mut own = vec![
        (lease::rules(), run::LEASE),
        (install_key_rules(), run::FINGERPRINTS),
    ];
    let mut cluster = Vec::new();
    if webhooks {
        own.push((admission::namespace_rules(), run::CERTIFICATE));
        cluster = only_named(&[(admission::cluster_rules(), &registration)]);
        cluster.extend(merge(&guard::rules()));
    }
    objects.role(&account.namespace, &account.name, only_named(&own))?;

    // Cluster-scoped objects must not have the name of another installation's.
    let name = format!("{}:{}", account.namespace, account.name);
    if arguments.namespace.is_empty() {
        cluster.splice(0..0, merge(&rules));
    } else {
        let (wide, narrow): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(|rule| rule.cluster_wide);
        cluster.splice(0..0, merge(&wide));
        let mut namespaces = arguments.namespace.clone();
        namespaces.sort();
        namespaces.dedup();
        for namespace in &namespaces {
            objects.role(namespace, &name, merge(&narrow))?;
        }
    }
    if !cluster.is_empty() {
        objects.cluster_role(&name, cluster)?;
    }
    for (name, rules) in arguments.controllers.rows().flat_map(|row| (row.roles)()) {
        objects.push(&ClusterRole {
            metadata: metadata(name, None),
            rules: Some(merge(&rules)),
            ..ClusterRole::default()
        })?;
    }
    Ok(objects.list)
}

/// Rules, each restricted to the object of one name. `create` cannot be restricted: the authorizer does not know the
/// name of a new object.
fn only_named(rules: &[(Vec<Rule>, &str)]) -> Vec<PolicyRule> {
    let creating = |rule: &Rule| {
        rule.verbs.contains(&"create").then_some(Rule {
            verbs: &["create"],
            ..rule.clone()
        })
    };
    let creates: Vec<Rule> = rules
        .iter()
        .flat_map(|(rules, _)| rules)
        .filter_map(creating)
        .collect();
    let mut narrowed = merge(&creates);
    for (rules, name) in rules {
        for mut rule in merge(rules) {
            rule.verbs.retain(|verb| verb != "create");
            rule.resource_names = Some(vec![(*name).to_owned()]);
            narrowed.push(rule);
        }
    }
    narrowed
}

/// A manifest under construction.
struct Objects<'a> {
    account: &'a Account,
    list: Vec<Value>,
}

impl<'a> Objects<'a> {
    fn new(account: &'a Account) -> Self {
        Self {
            account,
            list: Vec::new(),
        }
    }

    fn push(&mut self, object: &impl Serialize) -> Result<(), serde_json::Error> {
        self.list.push(serde_json::to_value(object)?);
        Ok(())
    }

    fn subjects(&self) -> Vec<Subject> {
        vec![Subject {
            kind: "ServiceAccount".into(),
            name: self.account.name.clone(),
            namespace: Some(self.account.namespace.clone()),
            ..Subject::default()
        }]
    }

    fn role(&mut self, namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Result<(), serde_json::Error> {
        self.push(&Role {
            metadata: metadata(name, Some(namespace)),
            rules: Some(rules),
        })?;
        self.push(&RoleBinding {
            metadata: metadata(name, Some(namespace)),
            role_ref: role_ref("Role", name),
            subjects: Some(self.subjects()),
        })
    }

    fn cluster_role(&mut self, name: &str, rules: Vec<PolicyRule>) -> Result<(), serde_json::Error> {
        self.push(&ClusterRole {
            metadata: metadata(name, None),
            rules: Some(rules),
            ..ClusterRole::default()
        })?;
        self.push(&ClusterRoleBinding {
            metadata: metadata(name, None),
            role_ref: role_ref("ClusterRole", name),
            subjects: Some(self.subjects()),
        })
    }
}

fn metadata(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(ToOwned::to_owned),
        labels: Some([("app.kubernetes.io/name".to_owned(), "stanchion".to_owned())].into()),
        ..ObjectMeta::default()
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: "rbac.authorization.k8s.io".into(),
        kind: kind.into(),
        name: name.into(),
    }
}
