//! The components of a project: each a pure function from the [`Project`] to the objects that it consists of.
//!
//! [`ALL`] is the table. A component is one file, which fills in a [`Component`], and one line here: the Deployment,
//! the Service, probes, scheduling, security, hashes, the condition and the status all follow from the row.

mod auth;
mod deployment;
mod environment;
mod imgproxy;
pub mod kong;
mod meta;
mod postgrest;
mod probes;
mod project;
mod realtime;
mod service;
mod storage;
mod studio;

use serde_json::{Value, json};
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::supabase::Options;

pub use deployment::deployment;
pub use environment::Environment;
pub use probes::{Probe, Probes};
pub use project::{Address, Bucket, Project, Secrets};
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
    /// What it gets unless the spec says otherwise.
    pub resources: Resources,
    /// The user that its image is made for: a restricted pod must name one.
    pub user: i64,
    /// How it is asked whether it lives.
    pub probes: fn(&Project<'_>) -> Probes,
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
    pub command: Vec<&'static str>,
    /// Files, as a `ConfigMap` with this suffix, and where they are mounted.
    pub files: Option<Files>,
    /// Directories that the container may write to.
    pub scratch: Vec<&'static str>,
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
