//! `GitlabProfile`: defaults that instances share.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::Topology;
use super::helm::{ChartRepository, Values, free_form};
use super::patterns;

/// Defaults that instances share.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.bnerd.com",
    version = "v1alpha1",
    kind = "GitlabProfile",
    plural = "gitlabprofiles",
    singular = "gitlabprofile",
    shortname = "glprofile",
    derive = "PartialEq",
    doc = "Defaults that GitlabInstances share.",
    printcolumn(
        name = "PG-Topology",
        type_ = "string",
        json_path = ".spec.defaults.postgres.topology"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GitlabProfileSpec {
    /// What an instance gets where it does not say otherwise.
    #[serde(default)]
    pub defaults: ProfileDefaults,
    /// What Flux may do for the instances of this profile. Only administrators write profiles.
    #[serde(default)]
    pub release: ProfileRelease,
}

/// What Flux may do for the instances of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRelease {
    /// The `ServiceAccount` of the instance's namespace as which Flux installs the chart, instead of the one that the
    /// operator makes. The administrator creates it in that namespace, with the rights that the chart needs there: who
    /// may write an instance in that namespace uses these rights through the values of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub service_account_name: Option<String>,
    /// Where the instances of this profile find the chart, where they name no repository themselves. It needs not be
    /// among the repositories that the operator allows to everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<ChartRepository>,
}

/// What an instance gets where it does not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileDefaults {
    /// Of a managed database.
    #[serde(default)]
    pub postgres: PostgresDefaults,
    /// Of a managed Redis.
    #[serde(default)]
    pub redis: RedisDefaults,
    /// Of a managed Elasticsearch.
    #[serde(default)]
    pub elasticsearch: ElasticsearchDefaults,
    /// When backups are made, as a cron line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 6, max = 100), pattern(patterns::CRON))]
    pub backup_schedule: Option<String>,
    /// Values for the chart; everything else wins over them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Values,
}

/// Of a managed database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresDefaults {
    /// One server or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// How many servers, with `topology: ha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// Whether connections go through `PgBouncer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbouncer: Option<bool>,
}

/// Of a managed Redis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisDefaults {
    /// One server or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// How many servers, with `topology: ha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
}

/// Of a managed Elasticsearch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticsearchDefaults {
    /// How many nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
}
