//! The components of a project: each is a pure function from the [`Project`] to its objects.
//!
//! [`ALL`] is the table. A component is one file, which fills in a [`Component`], and one line here: the Deployment,
//! the Service, probes, scheduling, security, hashes, its database login, its keys, its gateway routes, the condition
//! and the status follow from the row.

mod analytics;
mod auth;
mod deployment;
pub(crate) mod environment;
mod functions;
mod imgproxy;
pub(crate) mod kong;
mod meta;
mod pooler;
mod postgrest;
mod probes;
mod project;
mod realtime;
mod secret_digests;
mod storage;
mod studio;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::supabase::Options;

use crate::database::Login;
use crate::keys::Generated;
use kong::routes::Route;

pub(crate) use auth::{CLIENT_ID, CLIENT_SECRET};
pub(crate) use deployment::{deployment, service};
pub(crate) use environment::Environment;
pub(crate) use probes::{Probe, Probes};
pub(crate) use project::{Address, Bucket, ConfigMaps, Project};
pub(crate) use secret_digests::{SecretDigests, SecretHasher};

/// In deployment order: the gateway first, then the services behind it.
pub(crate) const ALL: &[Component] = &[
    kong::COMPONENT,
    auth::COMPONENT,
    postgrest::COMPONENT,
    realtime::COMPONENT,
    storage::COMPONENT,
    meta::COMPONENT,
    studio::COMPONENT,
    imgproxy::COMPONENT,
    functions::COMPONENT,
    pooler::COMPONENT,
    analytics::COMPONENT,
];

/// The length of the longest name in the table.
#[allow(clippy::indexing_slicing, reason = "it is checked by the compiler")]
pub(crate) const LONGEST_NAME: usize = {
    let (mut longest, mut index) = (0, 0);
    while index < ALL.len() {
        if ALL[index].name.len() > longest {
            longest = ALL[index].name.len();
        }
        index += 1;
    }
    longest
};

/// One row of the table.
pub(crate) struct Component {
    /// The name of the container, and the suffix of its children's names.
    pub name: &'static str,
    /// Its field in the spec and in the status.
    pub field: &'static str,
    /// The label `app.kubernetes.io/component`, which is part of a Deployment's immutable selector.
    pub label: &'static str,
    /// Its condition in the status.
    pub condition: &'static str,
    /// Its options in the spec; `None` if the project does not use it.
    pub options: fn(&SupabaseProjectSpec) -> Option<&Options>,
    /// The default image.
    pub image: &'static str,
    pub ports: &'static [Port],
    /// Whether clients outside of the project reach it directly, not only through the gateway.
    pub open: bool,
    /// The default resources.
    pub resources: Resources,
    /// The user of its image: a restricted pod must set one.
    pub user: i64,
    pub probes: fn(&Project<'_>) -> Probes,
    /// Its database logins. The first component that has a login brings what the login needs in the database.
    pub logins: &'static [Login],
    /// Values that are generated for it, besides the passwords of its logins.
    pub keys: &'static [Generated],
    /// Its routes through the gateway.
    pub routes: &'static [Route],
    /// Objects of the user that it needs, besides those of every project.
    pub needs: fn(&SupabaseProjectSpec) -> Needs,
    pub environment: fn(&Project<'_>, &mut Environment),
    /// Additional settings of its pod.
    pub extras: fn(&Project<'_>) -> Extras,
}

/// A port of a container.
pub(crate) struct Port {
    pub name: &'static str,
    pub number: u16,
    /// Whether the Service has it, too.
    pub service: bool,
}

impl Port {
    const fn service(name: &'static str, number: u16) -> Self {
        Self {
            name,
            number,
            service: true,
        }
    }

    /// A port that only the pod itself, or the kubelet, uses.
    const fn pod(name: &'static str, number: u16) -> Self {
        Self {
            service: false,
            ..Self::service(name, number)
        }
    }
}

/// Requests and limits.
pub(crate) struct Resources {
    /// Requested memory and CPU.
    pub requests: (&'static str, &'static str),
    /// Limits of memory and CPU.
    pub limits: (&'static str, &'static str),
}

impl Resources {
    const fn new(requests: (&'static str, &'static str), limits: (&'static str, &'static str)) -> Self {
        Self { requests, limits }
    }
}

/// Additional settings of a pod.
#[derive(Default)]
pub(crate) struct Extras {
    /// Replaces the image's command.
    pub command: Vec<String>,
    /// Files in a `ConfigMap`, and their mount path.
    pub files: Option<Files>,
    /// Writable directories.
    pub scratch: Vec<&'static str>,
    /// Additional read-only mounts.
    pub mounts: Vec<Mount>,
}

/// A volume in a container, or one file of it.
pub(crate) struct Mount {
    /// The volume's name.
    pub name: &'static str,
    /// The volume, as in a pod; `None` if another mount defines it.
    pub volume: Option<Value>,
    pub path: String,
    /// The single file to mount.
    pub file: Option<String>,
}

/// Objects of the user that must exist. The pods are replaced when their contents change.
#[derive(Default)]
pub struct Needs {
    pub secrets: Vec<Needed>,
    pub config_maps: Vec<Needed>,
}

/// A Secret or a `ConfigMap` that must exist.
pub struct Needed {
    /// Its name in messages.
    pub what: &'static str,
    pub name: String,
    /// The keys that it must have.
    pub keys: &'static [&'static str],
}

/// Files of a component.
pub(crate) struct Files {
    /// The suffix of the `ConfigMap`'s name.
    pub suffix: &'static str,
    /// The mount path.
    pub path: &'static str,
    /// File names and contents.
    pub data: Vec<(&'static str, String)>,
}

/// The components of a project, in order.
pub(crate) fn wanted(spec: &SupabaseProjectSpec) -> impl Iterator<Item = (&'static Component, &Options)> {
    ALL.iter()
        .filter_map(move |component| Some((component, (component.options)(spec)?)))
}

/// The database logins of a project, in order, without duplicates.
pub(crate) fn logins(spec: &SupabaseProjectSpec) -> Vec<Login> {
    let logins: BTreeSet<Login> = wanted(spec)
        .flat_map(|(component, _)| component.logins.iter().copied())
        .collect();
    logins.into_iter().collect()
}

/// The values that are generated for the components, besides the passwords.
pub(crate) fn generated(spec: &SupabaseProjectSpec) -> Vec<&'static Generated> {
    wanted(spec).flat_map(|(component, _)| component.keys).collect()
}

impl Component {
    /// The name of its Deployment and Service.
    pub(crate) fn child_name(&self, project: &str) -> String {
        format!("{project}-{}", self.name)
    }

    /// The labels of its children, and the selector of its pods: the same five as the predecessor's, because a
    /// Deployment's selector is immutable.
    pub(crate) fn labels(&self, project: &str) -> Value {
        json!({
            "app.kubernetes.io/name": self.name,
            "app.kubernetes.io/instance": project,
            "app.kubernetes.io/component": self.label,
            "app.kubernetes.io/part-of": "supabase",
            "app.kubernetes.io/managed-by": MANAGED_BY,
        })
    }

    /// The `ConfigMap` with its files, if it has any.
    pub(crate) fn config_map(&self, project: &Project<'_>) -> Option<Value> {
        let files = (self.extras)(project).files?;
        let data: serde_json::Map<String, Value> = files
            .data
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Value::String(text)))
            .collect();
        Some(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": format!("{}-{}", project.name, files.suffix), "labels": self.labels(project.name) },
            "data": data,
        }))
    }
}

/// The value of the label that all objects of a project have.
pub(crate) const MANAGED_BY: &str = "supabase-operator";

#[cfg(test)]
pub(crate) use project::tests as test_fixture;

#[cfg(test)]
mod tests;
