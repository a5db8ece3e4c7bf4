//! Status of a `GitlabInstance`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::{impl_status, lenient_conditions};

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
