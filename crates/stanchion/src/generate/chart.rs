//! What the Helm chart gets from the types: the CRDs of each controller, and the RBAC rules of each controller.
//!
//! The chart chooses controllers and namespaces when Helm renders it, so the rules are written down in the parts from
//! which each choice is put together. They are taken out of what `stanchion rbac` prints: there is one source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::Value;

use super::GenerateError;
use crate::controllers::{self, Choice};
use crate::{crds, rbac, run, yaml};

/// Stands for the namespace of the release in `files/rbac.yaml`; the template puts the name in its place.
const OPERATOR_NAMESPACE: &str = "OPERATOR-NAMESPACE";
/// Stands for a namespace that the operator watches.
const WATCHED_NAMESPACE: &str = "WATCHED-NAMESPACE";
const ACCOUNT: &str = "OPERATOR";

const HEADER: &str = "# Made by `make generate` from the source of `stanchion rbac`. Do not edit it.\n";

/// The rules, in parts.
#[derive(Default, Serialize)]
struct Rights {
    operator: Operator,
    controllers: BTreeMap<&'static str, Parts>,
}

/// What the operator needs beside its controllers.
#[derive(Default, Serialize)]
struct Operator {
    /// In its own namespace.
    namespace: Vec<Value>,
    /// In its own namespace, where it makes the certificate of its webhooks itself.
    certificate: Vec<Value>,
    /// In the whole cluster, where it serves webhooks, and metrics beside them.
    webhooks: Vec<Value>,
}

/// What one controller needs.
#[derive(Default, Serialize)]
struct Parts {
    /// For resources without a namespace.
    cluster: Vec<Value>,
    /// For resources in the namespaces that it watches.
    namespaced: Vec<Value>,
    /// The `ClusterRoles` that it hands out to others, by name. The operator does not have their rights itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    roles: BTreeMap<String, Value>,
}

/// The files of the chart, below its folder.
pub(super) fn files(chart: &Path) -> Result<Vec<(PathBuf, String)>, GenerateError> {
    let mut files = vec![(chart.join("files/rbac.yaml"), rights()?)];
    let crds = stanchion_api::crds();
    for controller in controllers::ALL {
        for kind in (controller.kinds)() {
            let name = format!("{}.{}", kind.plural, kind.group);
            for crd in crds.iter().filter(|crd| crd.name_any() == name) {
                let folder = chart.join("files/crds").join(controller.name);
                // Name and labels are the chart's.
                let spec = serde_json::json!({ "spec": crd.spec });
                files.push((folder.join(crds::file_name(crd)), yaml::document(&spec)?));
            }
        }
    }
    Ok(files)
}

fn rights() -> Result<String, GenerateError> {
    let mut rights = Rights::default();
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
                    Some(_) if names(rule, run::CERTIFICATE) => &mut rights.operator.certificate,
                    Some(_) => &mut rights.operator.namespace,
                    None if is_for_webhooks(rule) => &mut rights.operator.webhooks,
                    None => &mut parts.cluster,
                };
                if !list.contains(rule) {
                    list.push(rule.clone());
                }
            }
        }
        rights.controllers.insert(controller.name, parts);
    }
    Ok(format!("{HEADER}{}", yaml::document(&rights)?))
}

/// Whether the rule is for the object of this name alone.
fn names(rule: &Value, name: &str) -> bool {
    rule["resourceNames"] == serde_json::json!([name])
}

/// Whether the rule is for registering webhooks, or for asking who calls.
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

    /// Options of `stanchion run` that the chart does not give, each with the reason.
    const NOT_OF_THE_CHART: [(&str, &str); 2] = [
        ("webhook-url", "for an operator outside of the cluster"),
        (
            "postgres-url",
            "a URL with a password does not belong into arguments: `defaultInstance.secretName` mounts it as a file",
        ),
    ];

    /// An option that is added to the program and forgotten in the chart is found here, without helm.
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
