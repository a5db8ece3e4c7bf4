//! The components of a project: each a pure function from the [`Project`] to the objects that it consists of.
//!
//! [`ALL`] is the table. A component is one file, which fills in a [`Component`], and one line here: the Deployment,
//! the Service, probes, scheduling, security, hashes, its login to the database, its keys, the way through the gateway,
//! the condition and the status all follow from the row.

mod analytics;
mod auth;
mod deployment;
pub mod environment;
mod functions;
mod imgproxy;
pub mod kong;
mod meta;
mod pooler;
mod postgrest;
mod probes;
mod project;
mod realtime;
mod seals;
mod service;
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
pub use deployment::deployment;
pub use environment::Environment;
pub use probes::{Probe, Probes};
pub use project::{Address, Bucket, ConfigMaps, Project};
pub use seals::{Sealer, Seals};
pub use service::service;

/// In the order in which they are deployed: whoever is asked comes after whoever leads there, as people expect it.
pub const ALL: &[Component] = &[
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

/// One row.
pub struct Component {
    /// The name of the container, and what follows the project's name in the names of children.
    pub name: &'static str,
    /// Its field in the spec and in the status.
    pub field: &'static str,
    /// The label `app.kubernetes.io/component`, which a Deployment's selector has for ever.
    pub label: &'static str,
    /// Its condition in the status.
    pub condition: &'static str,
    /// What the spec says about it; `None` when the project does without it.
    pub options: fn(&SupabaseProjectSpec) -> Option<&Options>,
    /// The image that it runs unless the spec names another.
    pub image: &'static str,
    /// Where it listens.
    pub ports: &'static [Port],
    /// Whether it is reached from outside the project, and not through the gateway only.
    pub open: bool,
    /// What it gets unless the spec says otherwise.
    pub resources: Resources,
    /// The user that its image is made for: a restricted pod must name one.
    pub user: i64,
    /// How it is asked whether it lives.
    pub probes: fn(&Project<'_>) -> Probes,
    /// Who it logs in to the database as. What a login needs there is made with the first component that has it.
    pub logins: &'static [Login],
    /// What is generated for it, beside the passwords of its logins.
    pub keys: &'static [Generated],
    /// What leads to it through the gateway.
    pub routes: &'static [Route],
    /// What must be there of the user's, beside what every project names.
    pub needs: fn(&SupabaseProjectSpec) -> Needs,
    /// Its configuration.
    pub environment: fn(&Project<'_>, &mut Environment),
    /// What else its pod has.
    pub extras: fn(&Project<'_>) -> Extras,
}

/// A port of a container.
pub struct Port {
    /// Name.
    pub name: &'static str,
    /// Number.
    pub number: u16,
    /// Whether the Service has it, too.
    pub service: bool,
}

/// Requests and limits.
pub struct Resources {
    /// Memory and CPU to reserve.
    pub requests: (&'static str, &'static str),
    /// Memory and CPU to stay below.
    pub limits: (&'static str, &'static str),
}

/// What only some pods have.
#[derive(Default)]
pub struct Extras {
    /// Instead of the image's own command.
    pub command: Vec<String>,
    /// Files, as a `ConfigMap` with this suffix, and where they are mounted.
    pub files: Option<Files>,
    /// Directories that the container may write to.
    pub scratch: Vec<&'static str>,
    /// What else it sees, to be read.
    pub mounts: Vec<Mount>,
}

/// A volume in a container, or one file of it.
pub struct Mount {
    /// The volume's name.
    pub name: &'static str,
    /// The volume, as in a pod; `None` where another mount has it.
    pub volume: Option<Value>,
    /// Where it is seen.
    pub path: String,
    /// The one file that is seen there.
    pub file: Option<String>,
}

/// What must be there of the user's. Whatever is in it replaces the pods when it changes.
#[derive(Default)]
pub struct Needs {
    /// Secrets.
    pub secrets: Vec<Needed>,
    /// `ConfigMaps`.
    pub config_maps: Vec<Needed>,
}

/// A Secret or a `ConfigMap` that must be there.
pub struct Needed {
    /// What people call it.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// The keys that it must have.
    pub keys: &'static [&'static str],
}

/// Files of a component.
pub struct Files {
    /// What follows the project's name in the name of the `ConfigMap`.
    pub suffix: &'static str,
    /// Where they are mounted.
    pub path: &'static str,
    /// File names and contents.
    pub data: Vec<(&'static str, String)>,
}

/// The components that the spec wants, in order.
pub fn wanted(spec: &SupabaseProjectSpec) -> impl Iterator<Item = (&'static Component, &Options)> {
    ALL.iter()
        .filter_map(move |component| Some((component, (component.options)(spec)?)))
}

/// Who logs in to the database, in order and each once.
pub fn logins(spec: &SupabaseProjectSpec) -> Vec<Login> {
    let logins: BTreeSet<Login> = wanted(spec)
        .flat_map(|(component, _)| component.logins.iter().copied())
        .collect();
    logins.into_iter().collect()
}

/// What is generated for the components, beside the passwords.
pub fn generated(spec: &SupabaseProjectSpec) -> Vec<&'static Generated> {
    wanted(spec).flat_map(|(component, _)| component.keys).collect()
}

impl Component {
    /// The name of its Deployment and Service.
    pub fn child_name(&self, project: &str) -> String {
        format!("{project}-{}", self.name)
    }

    /// The labels of its children, and the selector of its pods: the same five that a predecessor gave them, since a
    /// Deployment's selector cannot be changed.
    pub fn labels(&self, project: &str) -> Value {
        json!({
            "app.kubernetes.io/name": self.name,
            "app.kubernetes.io/instance": project,
            "app.kubernetes.io/component": self.label,
            "app.kubernetes.io/part-of": "supabase",
            "app.kubernetes.io/managed-by": MANAGED_BY,
        })
    }

    /// The `ConfigMap` with its files, if it has any.
    pub fn config_map(&self, project: &Project<'_>) -> Option<Value> {
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

/// The value of the label by which everything of a project is known.
pub const MANAGED_BY: &str = "supabase-operator";

#[cfg(test)]
pub(crate) use project::tests as tests_bed;

#[cfg(test)]
mod tests;
