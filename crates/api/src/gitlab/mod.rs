//! `GitlabInstance`: a GitLab, installed by Flux from GitLab's own chart, on managed or brought backends.

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

/// The finalizer of the operator that these objects were first made for, and ours.
pub const FINALIZER: &str = "k8s.bnerd.com/gitlab-finalizer";

/// Condition types of a `GitlabInstance`.
pub mod condition {
    /// The release runs what the spec asks for.
    pub const READY: &str = "Ready";
    /// The database is there and can be used.
    pub const POSTGRES_READY: &str = "PostgresReady";
    /// Redis is there and can be used.
    pub const REDIS_READY: &str = "RedisReady";
    /// Elasticsearch is there and can be used.
    pub const ELASTICSEARCH_READY: &str = "ElasticsearchReady";
    /// The credentials of the object storage are complete, and handed on.
    pub const OBJECT_STORAGE_READY: &str = "ObjectStorageReady";
    /// What Flux says about the release.
    pub const RELEASED: &str = "Released";
}

/// A GitLab.
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
    /// GitLab's version: exact (`17.11.7`), the newest known of a major or minor one (`17`, `18.5`), or an alias of the
    /// version map (`latest`, `stable`).
    #[serde(default = "latest")]
    #[schemars(length(min = 1, max = 63), pattern(patterns::VERSION))]
    pub version: String,
    /// The Community or the Enterprise Edition.
    #[serde(default)]
    pub edition: Edition,
    /// The `GitlabProfile` whose defaults are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub profile: Option<String>,
    /// The Secret with the license, under the key `license`. The Enterprise Edition needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), pattern(patterns::NAME_OR_NOTHING))]
    pub license_secret: Option<String>,
    /// Where it is reached.
    pub domains: Domains,
    /// The database.
    #[serde(default)]
    pub postgres: Postgres,
    /// Redis.
    #[serde(default)]
    pub redis: Redis,
    /// Elasticsearch for advanced search; made for the Enterprise Edition only.
    #[serde(default)]
    pub elasticsearch: Elasticsearch,
    /// The S3 buckets. Without them charts before 10 bring a `MinIO` of their own, which is not for production.
    #[serde(default)]
    pub object_storage: ObjectStorage,
    /// The mail server.
    #[serde(default)]
    pub smtp: Smtp,
    /// When backups are made, as a cron line; the profile's by default, and none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 6, max = 100), pattern(patterns::CRON))]
    pub backup_schedule: Option<String>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "patterns::labels")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "patterns::tolerations")]
    pub tolerations: Vec<Loose<Toleration>>,
    /// The chart, and what it is told beside everything above.
    #[serde(default)]
    pub helm: Helm,
    /// How a new version is reached.
    #[serde(default)]
    pub upgrade: Upgrade,
    /// Leaves everything as it is; a deletion is still honoured.
    #[serde(default)]
    pub suspend: bool,
}

fn latest() -> String {
    "latest".into()
}

/// An edition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Edition {
    #[default]
    Ce,
    Ee,
}

impl Edition {
    /// As the chart spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ce => "ce",
            Self::Ee => "ee",
        }
    }
}

/// Where it is reached. What has no domain is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Domains {
    /// The host of GitLab itself, such as `git.example.com`.
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub gitlab: String,
    /// The host of the container registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub registry: Option<String>,
    /// The host of the agent server for Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub kas: Option<String>,
    /// The domain under which each site of GitLab Pages has a host of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::HOST))]
    pub pages: Option<String>,
}

#[cfg(test)]
mod tests;
