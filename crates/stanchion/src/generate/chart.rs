//! The generated files of the Helm chart: the CRDs and the RBAC rules of each controller.
//!
//! Helm selects controllers and namespaces when it renders the chart, so the rules are written in parts from which each
//! selection can be composed. They come from `stanchion rbac`: there is one source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::Value;

use super::GenerateError;
use crate::controllers::{self, Choice};
use crate::{crds, rbac, run, yaml};

/// The placeholder for the release's namespace in `files/rbac.yaml`; the template replaces it.
const OPERATOR_NAMESPACE: &str = "OPERATOR-NAMESPACE";
/// The placeholder for a watched namespace.
const WATCHED_NAMESPACE: &str = "WATCHED-NAMESPACE";
const ACCOUNT: &str = "OPERATOR";

const HEADER: &str = "# Made by `make generate` from the source of `stanchion rbac`. Do not edit it.\n";

/// The rules, in parts.
#[derive(Default, Serialize)]
struct Permissions {
    operator: Operator,
    controllers: BTreeMap<&'static str, Parts>,
}

/// The rules of the operator itself.
#[derive(Default, Serialize)]
struct Operator {
    /// In its own namespace.
    namespace: Vec<Value>,
    /// In its own namespace, if it creates the certificate of its webhooks itself.
    certificate: Vec<Value>,
    /// In the whole cluster, if it serves webhooks, and metrics beside them.
    webhooks: Vec<Value>,
}

/// The rules of one controller.
#[derive(Default, Serialize)]
struct Parts {
    /// For cluster-scoped resources.
    cluster: Vec<Value>,
    /// For resources in the watched namespaces.
    namespaced: Vec<Value>,
    /// The `ClusterRoles` that it binds for others, by name. The operator does not have their permissions itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    roles: BTreeMap<String, Value>,
}

/// The files of the chart, below its folder.
pub(super) fn files(chart: &Path) -> Result<Vec<(PathBuf, String)>, GenerateError> {
    let mut files = vec![(chart.join("files/rbac.yaml"), permissions()?)];
    let crds = stanchion_api::crds();
    for controller in controllers::ALL {
        for kind in (controller.kinds)() {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            for crd in crds.iter().filter(|crd| crd.name_any() == name) {
                let folder = chart.join("files/crds").join(controller.name);
                // The chart sets name and labels.
                let spec = serde_json::json!({ "spec": crd.spec });
                files.push((folder.join(crds::file_name(crd)), yaml::document(&spec)?));
            }
        }
    }
    Ok(files)
}

fn permissions() -> Result<String, GenerateError> {
    let mut permissions = Permissions::default();
    for controller in controllers::ALL {
        let mut parts = Parts::default();
        let arguments = rbac::Arguments::for_account(
            Choice::of(&[controller.name]),
            &[WATCHED_NAMESPACE],
            (OPERATOR_NAMESPACE, ACCOUNT),
        );
        for object in rbac::objects(&arguments).map_err(rbac::RbacError::from)? {
            let name = object
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if (controller.roles)().iter().any(|(role, _)| *role == name) {
                parts
                    .roles
                    .insert(name.to_owned(), object.get("rules").cloned().unwrap_or_default());
                continue;
            }
            let rules = object.get("rules").and_then(Value::as_array);
            let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
            for rule in rules.into_iter().flatten() {
                let list = match namespace {
                    Some(WATCHED_NAMESPACE) => &mut parts.namespaced,
                    Some(_) if names(rule, run::CERTIFICATE) => &mut permissions.operator.certificate,
                    Some(_) => &mut permissions.operator.namespace,
                    None if is_for_webhooks(rule) => &mut permissions.operator.webhooks,
                    None => &mut parts.cluster,
                };
                if !list.contains(rule) {
                    list.push(rule.clone());
                }
            }
        }
        permissions.controllers.insert(controller.name, parts);
    }
    Ok(format!("{HEADER}{}", yaml::document(&permissions)?))
}

/// Whether the rule is only for the object of this name.
fn names(rule: &Value, name: &str) -> bool {
    rule["resourceNames"] == serde_json::json!([name])
}

/// Whether the rule is for registering webhooks, or for token and access reviews.
fn is_for_webhooks(rule: &Value) -> bool {
    const GROUPS: [&str; 3] = [
        "admissionregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
    ];
    let groups = rule["apiGroups"].as_array();
    groups
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|group| GROUPS.contains(&group))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    /// Options of `stanchion run` that the chart does not set, each with the reason.
    const NOT_OF_THE_CHART: [(&str, &str); 2] = [
        ("webhook-url", "for an operator outside of the cluster"),
        (
            "postgres-url",
            "a URL with a password does not belong into arguments: `defaultInstance.secretName` mounts it as a file",
        ),
    ];

    /// Finds an option of the program that the chart lacks, without helm.
    #[test]
    fn the_chart_gives_every_option_of_run() {
        let template = include_str!("../../../../charts/stanchion/templates/deployment.yaml");
        let cli = Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        let options = run.get_arguments().filter_map(|argument| argument.get_long());
        for option in options.filter(|option| *option != "help") {
            let given = [format!("--{option}\n"), format!("--{option}=")]
                .iter()
                .any(|word| template.contains(word));
            let excused = NOT_OF_THE_CHART.iter().any(|(name, _)| *name == option);
            assert_ne!(
                given, excused,
                "--{option}: charts/stanchion/templates/deployment.yaml must give it, or NOT_OF_THE_CHART must say why not"
            );
        }
    }
}
