//! The input of the checks: objects as the API server returned them, and the time.

use jiff::Timestamp;
use serde_json::Value;

use super::connect::Contact;
use crate::cluster::{Unreadable, is_name, text};

/// A value that was read, or why it was not.
pub(crate) type Read<T> = Result<T, Unreadable>;

/// An API group that the operator uses, and its served resources.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) group: String,
    /// The plural names of its resources.
    pub(crate) resources: Vec<String>,
}

/// The operator's installations and what belongs to them.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) now: Timestamp,
    /// `v1.36.3`
    pub(crate) version: String,
    /// The only namespace whose installation was read; `None` for all.
    pub(crate) operator_namespace: Option<String>,
    pub(crate) crds: Read<Vec<Value>>,
    /// Objects of our kinds.
    pub(crate) objects: Read<Vec<Value>>,
    pub(crate) namespaces: Read<Vec<Value>>,
    /// Deployments that belong to an installation of the operator.
    pub(crate) deployments: Read<Vec<Value>>,
    /// Pods that belong to an installation of the operator.
    pub(crate) pods: Read<Vec<Value>>,
    /// The Leases of the installations.
    pub(crate) leases: Read<Vec<Value>>,
    /// Services in the namespaces of the installations.
    pub(crate) services: Read<Vec<Value>>,
    pub(crate) endpoint_slices: Read<Vec<Value>>,
    /// Validating and mutating configurations whose name starts like ours.
    pub(crate) webhooks: Read<Vec<Value>>,
    /// The `Certificate`s of cert-manager that belong to an installation.
    pub(crate) certificates: Read<Vec<Value>>,
    /// Roles, `ClusterRole`s and their bindings.
    pub(crate) rbac: Read<Vec<Value>>,
    /// The groups of other operators that the cluster serves.
    pub(crate) served: Read<Vec<Served>>,
    /// Deployments of Flux.
    pub(crate) flux: Read<Vec<Value>>,
    /// The metrics of all replicas.
    pub(crate) metrics: Read<String>,
    /// The connections of `--connect`; empty without it.
    pub(crate) contacts: Vec<Contact>,
}

/// An installation of the operator, as its Deployment describes it.
#[derive(Clone, Debug)]
pub(crate) struct Installation<'a> {
    pub(crate) deployment: &'a Value,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> Installation<'a> {
    pub(crate) fn of(deployment: &'a Value) -> Self {
        let text = |pointer: &str| {
            deployment
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let containers = deployment
            .pointer("/spec/template/spec/containers")
            .and_then(Value::as_array);
        let operator = containers
            .into_iter()
            .flatten()
            .find(|container| container["name"] == "operator");
        let arguments = operator.and_then(|container| container.get("args")?.as_array());
        Self {
            deployment,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            arguments: arguments
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect(),
        }
    }

    /// `Deployment stanchion-system/stanchion`
    pub(crate) fn subject(&self) -> String {
        format!("Deployment {}/{}", self.namespace, self.name)
    }

    /// The values of an option, however often and in whatever format it is given.
    fn values(&self, option: &str) -> Vec<&'a str> {
        let mut values = Vec::new();
        let mut words = self.arguments.iter();
        while let Some(word) = words.next() {
            let rest = word.strip_prefix(option);
            let value = match rest {
                Some("") => words.next().copied(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            values.extend(value.into_iter().flat_map(|value| value.split(',')));
        }
        values
    }

    fn has(&self, flag: &str) -> bool {
        self.arguments.contains(&flag)
    }

    /// The values of an option that can be a name. The others are somebody's text: they would end up in a command that a person
    /// copies.
    fn names(&self, option: &str) -> Vec<&'a str> {
        let mut names = self.values(option);
        names.retain(|name| is_name(name));
        names
    }

    /// Its enabled controllers; empty for all.
    pub(crate) fn controllers(&self) -> Vec<&'a str> {
        self.names("--controllers")
    }

    /// Whether it runs the controller of this name.
    pub(crate) fn runs(&self, controller: &str) -> bool {
        let chosen = self.controllers();
        chosen.is_empty() || chosen.contains(&controller)
    }

    /// The namespaces that it watches; empty for all.
    pub(crate) fn namespaces(&self) -> Vec<&'a str> {
        self.names("--namespace")
    }

    /// Whether it watches this namespace.
    pub(crate) fn watches(&self, namespace: &str) -> bool {
        let listed = self.namespaces();
        listed.is_empty() || listed.contains(&namespace)
    }

    pub(crate) fn has_webhooks(&self) -> bool {
        !self.has("--no-webhooks")
    }

    /// Whether its certificate is mounted, for example from cert-manager.
    pub(crate) fn mounts_its_certificate(&self) -> bool {
        !self.values("--webhook-cert-dir").is_empty()
    }

    pub(crate) fn elects_a_leader(&self) -> bool {
        self.has("--leader-elect")
    }

    pub(crate) fn service_account(&self) -> &'a str {
        let account = self.deployment.pointer("/spec/template/spec/serviceAccountName");
        account.and_then(Value::as_str).unwrap_or("default")
    }

    /// Its version: that of the image's tag; by a digest, that of the label that the chart sets.
    pub(crate) fn version(&self) -> Option<&'a str> {
        let image = self.image().split('@').next().unwrap_or_default();
        let label = self
            .deployment
            .pointer("/metadata/labels/app.kubernetes.io~1version");
        let known = [
            image.rsplit_once(':').map(|(_, tag)| tag),
            label.and_then(Value::as_str),
        ];
        let mut versions = known
            .into_iter()
            .flatten()
            .map(|text| text.strip_prefix('v').unwrap_or(text));
        versions.find(|text| text.split('.').count() == 3 && text.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn image(&self) -> &'a str {
        let containers = self
            .deployment
            .pointer("/spec/template/spec/containers")
            .and_then(Value::as_array);
        let operator = containers
            .into_iter()
            .flatten()
            .find(|container| container["name"] == "operator");
        operator
            .and_then(|container| container.get("image")?.as_str())
            .unwrap_or_default()
    }

    /// Whether this pod is in its namespace and has the labels of its selector.
    pub(crate) fn selects(&self, pod: &Value) -> bool {
        let selector = self.deployment.pointer("/spec/selector/matchLabels");
        let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
        let (Some(selector), Some(labels)) = (selector.and_then(Value::as_object), labels) else {
            return false;
        };
        text(pod, "/metadata/namespace") == self.namespace
            && !selector.is_empty()
            && selector
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value))
    }

    /// The Deployment's pod selector, in the format of `kubectl -l`.
    pub(crate) fn selector(&self) -> String {
        let labels = self.deployment.pointer("/spec/selector/matchLabels");
        let pairs = labels.and_then(Value::as_object).into_iter().flatten();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect();
        pairs.join(",")
    }

    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.deployment
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }
}
