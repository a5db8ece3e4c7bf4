//! `GitlabInstance`: a GitLab that Flux installs from GitLab's own chart, with managed or existing backends.

mod backends;
mod helm;
pub mod patterns;
mod profile;
mod status;
mod upgrade;
mod version_map;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::loose::Loose;

pub use backends::{Elasticsearch, ObjectStorage, Postgres, Redis, Smtp, Topology, Volume};
pub use helm::{ChartRepository, Helm, Values};
pub use profile::{
    ElasticsearchDefaults, GitlabProfile, GitlabProfileSpec, PostgresDefaults, ProfileDefaults,
    ProfileRelease, RedisDefaults,
};
pub use status::{ElasticsearchAddress, GitlabInstanceStatus, Phase};
pub use upgrade::Upgrade;
pub use version_map::{ChartOf, DEFAULT_MAP, GitlabVersionMap, GitlabVersionMapSpec};

/// The finalizer. It is also the one of the operator that introduced this API.
pub const FINALIZER: &str = "k8s.bnerd.com/gitlab-finalizer";

/// Condition types of a `GitlabInstance`.
pub mod condition {
    /// The release runs what the spec asks for.
    pub const READY: &str = "Ready";
    /// The database exists and accepts connections.
    pub const POSTGRES_READY: &str = "PostgresReady";
    /// Redis exists and accepts connections.
    pub const REDIS_READY: &str = "RedisReady";
    /// Elasticsearch exists and accepts connections.
    pub const ELASTICSEARCH_READY: &str = "ElasticsearchReady";
    /// The Secret of the object storage is complete and copied for the chart.
    pub const OBJECT_STORAGE_READY: &str = "ObjectStorageReady";
    /// The state of the release as Flux reports it.
    pub const RELEASED: &str = "Released";
}

/// A GitLab installation.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.bnerd.com",
    version = "v1alpha1",
    kind = "GitlabInstance",
    plural = "gitlabinstances",
    singular = "gitlabinstance",
    shortname = "gli",
    namespaced,
    status = "GitlabInstanceStatus",
    derive = "PartialEq",
    doc = "A GitLab, installed by Flux from GitLab's own chart.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Host", type_ = "string", json_path = ".status.host"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.observedVersion"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "self.edition != 'ee' || (has(self.licenseSecret) && size(self.licenseSecret) > 0)",
    "edition ee needs licenseSecret: the name of a Secret with the key license"
))]
pub struct GitlabInstanceSpec {
    /// Version of GitLab: exact (`17.11.7`), the newest known release of a major or minor version (`17`, `18.5`), or an
    /// alias in the version map (`latest`, `stable`).
    #[serde(default = "latest")]
    #[schemars(length(min = 1, max = 63), pattern(patterns::VERSION))]
    pub version: String,
    /// `ce` for the Community Edition, `ee` for the Enterprise Edition.
    #[serde(default)]
    pub edition: Edition,
    /// The `GitlabProfile` that supplies defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub profile: Option<String>,
    /// The Secret with the license under the key `license`. Required for the Enterprise Edition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), pattern(patterns::NAME_OR_NOTHING))]
    pub license_secret: Option<String>,
    /// Host names under which users reach GitLab.
    pub domains: Domains,
    /// The database.
    #[serde(default)]
    pub postgres: Postgres,
    /// Redis, for the cache and the job queues.
    #[serde(default)]
    pub redis: Redis,
    /// Elasticsearch for advanced search. The operator creates it only for the Enterprise Edition.
    #[serde(default)]
    pub elasticsearch: Elasticsearch,
    /// The S3 buckets. Without them, charts before version 10 install a `MinIO` of their own, which is not for
    /// production.
    #[serde(default)]
    pub object_storage: ObjectStorage,
    /// The mail server for outgoing mail.
    #[serde(default)]
    pub smtp: Smtp,
    /// Cron schedule of backups. Defaults to the profile's value; without one there are no backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 6, max = 100), pattern(patterns::CRON))]
    pub backup_schedule: Option<String>,
    /// Labels that a node must have to run the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "patterns::labels")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "patterns::tolerations")]
    pub tolerations: Vec<Loose<Toleration>>,
    /// The Helm chart and additional values for it.
    #[serde(default)]
    pub helm: Helm,
    /// How the operator upgrades GitLab.
    #[serde(default)]
    pub upgrade: Upgrade,
    /// Stops reconciliation. Deletion of the object still works.
    #[serde(default)]
    pub suspend: bool,
}

fn latest() -> String {
    "latest".into()
}

/// An edition of GitLab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Edition {
    #[default]
    Ce,
    Ee,
}

impl Edition {
    /// The name of the edition in the chart's values.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ce => "ce",
            Self::Ee => "ee",
        }
    }
}

/// Host names of GitLab and its services. A service without a host name is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Domains {
    /// Host name of GitLab itself, such as `git.example.com`.
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub gitlab: String,
    /// Host name of the container registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub registry: Option<String>,
    /// Host name of the GitLab agent server for Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub kas: Option<String>,
    /// Domain of GitLab Pages. Each site gets a host name under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub pages: Option<String>,
}

#[cfg(test)]
mod tests;
