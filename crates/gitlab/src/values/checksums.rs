//! Rolls the pods that read a Secret when its contents change, because they read it only at start.
//!
//! The chart's annotations for all Deployments roll nothing. The annotations of a part are those of the part's pods;
//! the toolbox passes its own on to the pods of its backups.

use serde_json::{Value, json};

use super::Input;
use super::merge::layered;

/// Fingerprints of the Secrets that GitLab's pods read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    /// What Rails reads.
    pub rails: Option<String>,
    /// What the registry reads.
    pub registry: Option<String>,
    /// What the toolbox reads in addition to Rails' Secrets.
    pub toolbox: Option<String>,
    /// What the agent server reads.
    pub kas: Option<String>,
    /// What the exporter of metrics reads.
    pub exporter: Option<String>,
}

pub(super) fn values(input: &Input<'_>) -> Value {
    let Checksums {
        rails,
        registry,
        toolbox,
        kas,
        exporter,
    } = input.checksums;
    let domains = &input.spec.domains;
    let described = |part: &str, key: &str, sum: &str| json!({ "gitlab": { part: annotated(key, sum) } });
    layered([
        rails
            .as_deref()
            .map(|sum| rails_readers(sum, domains.pages.is_some())),
        registry
            .as_deref()
            .filter(|_| domains.registry.is_some())
            .map(|sum| json!({ "registry": annotated("registry-storage", sum) })),
        toolbox
            .as_deref()
            .map(|sum| described("toolbox", "backup-storage", sum)),
        kas.as_deref()
            .filter(|_| domains.kas.is_some())
            .map(|sum| described("kas", "redis", sum)),
        exporter
            .as_deref()
            .map(|sum| described("gitlab-exporter", "backends", sum)),
    ])
}

/// Pages mount Rails' connection, too; Gitaly and GitLab Shell do not.
fn rails_readers(sum: &str, pages: bool) -> Value {
    let readers = ["webservice", "sidekiq", "toolbox"]
        .into_iter()
        .chain(pages.then_some("gitlab-pages"));
    let described = readers.map(|reader| (reader.to_owned(), annotated("rails-storage", sum)));
    json!({ "gitlab": described.collect::<Value>() })
}

fn annotated(secret: &str, sum: &str) -> Value {
    let key = format!("checksum/{secret}");
    json!({ "annotations": { key: sum } })
}
