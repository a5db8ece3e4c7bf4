//! What the controller says about a `GitlabInstance`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::{impl_status, lenient_conditions};

/// Status of a `GitlabInstance`. No field is required: a status that another operator wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitlabInstanceStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The version that runs, once one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_version: Option<String>,
    /// The last version that ran. It outlives the release: the database is not older than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_version: Option<String>,
    /// The version of the chart that the release was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_version: Option<String>,
    /// The version that the spec asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_version: Option<String>,
    /// The versions that are still to be installed, in order; the last is the one that the spec asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrade_path: Vec<String>,
    /// Where Elasticsearch is, for GitLab's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticsearch: Option<ElasticsearchAddress>,
    /// The Secrets that were made for it and go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The conditions.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient_conditions"
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(GitlabInstanceStatus);

/// The life of a `GitlabInstance` in one word.
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

/// Where Elasticsearch is, for GitLab's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticsearchAddress {
    /// Its address.
    pub url: String,
    /// The Secret with the password of the user `elastic`, under that key.
    pub password_secret: String,
    /// The Secret with the authority of its certificate, under the key `ca.crt`.
    pub ca_secret: String,
}
