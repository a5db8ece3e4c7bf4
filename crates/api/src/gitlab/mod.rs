//! `GitlabInstance`: a GitLab that Flux installs from GitLab's own chart, with managed or existing backends.

mod backends;
pub mod patterns;
mod shared;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::loose::Loose;
use crate::status::{impl_status, lenient_conditions};

pub use backends::{Elasticsearch, ObjectStorage, Postgres, Redis, Smtp, Topology, Volume};
pub use shared::{
    ChartOf, ChartRepository, DEFAULT_MAP, ElasticsearchDefaults, GitlabProfile, GitlabProfileSpec,
    GitlabVersionMap, GitlabVersionMapSpec, Helm, PostgresDefaults, ProfileDefaults, ProfileRelease,
    RedisDefaults, Values,
};

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
    /// PostgreSQL: managed by Percona's operator, or an existing server.
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

/// Options for upgrades. The operator installs every required upgrade stop of GitLab on the way to the target version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Whether the next upgrade step waits until the database reports that the background migrations of the previous
    /// step are finished. If false, the next step starts as soon as the release is ready.
    #[serde(default = "yes")]
    pub wait_for_migrations: bool,
}

impl Default for Upgrade {
    fn default() -> Self {
        Self {
            wait_for_migrations: yes(),
        }
    }
}

fn yes() -> bool {
    true
}

/// Status of a `GitlabInstance`. No field is required, so a status that another operator wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitlabInstanceStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the instance in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The state of the instance in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Host name of GitLab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The version of GitLab that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_version: Option<String>,
    /// The last version of GitLab that ran. It stays when the release is gone, because the database was migrated to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_version: Option<String>,
    /// The version of the chart in the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_version: Option<String>,
    /// The version that the spec resolves to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_version: Option<String>,
    /// The versions that are still to be installed, in order. The last one is the target version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrade_path: Vec<String>,
    /// Address of Elasticsearch, to enter in GitLab's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticsearch: Option<ElasticsearchAddress>,
    /// The Secrets that the operator created for the instance and deletes with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The state of each part, as Kubernetes conditions.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient_conditions"
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(GitlabInstanceStatus);

/// The state of a `GitlabInstance` in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Phase {
    Pending,
    Provisioning,
    Deploying,
    Ready,
    Degraded,
    Failed,
    Suspended,
    Terminating,
}

/// Address of Elasticsearch, to enter in GitLab's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticsearchAddress {
    /// URL of Elasticsearch.
    pub url: String,
    /// The Secret with the password of the user `elastic`, under the key `elastic`.
    pub password_secret: String,
    /// The Secret with the CA certificate, under the key `ca.crt`.
    pub ca_secret: String,
}

#[cfg(test)]
mod tests;
