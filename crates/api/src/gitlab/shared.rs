//! `GitlabProfile` and `GitlabVersionMap`, which instances share, and the chart that all of them describe.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Topology;
use super::patterns;

/// Helm values. They are untyped, because the chart defines them.
pub type Values = Map<String, Value>;

/// The Helm chart and its values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Helm {
    /// Version of the chart. It overrides the version map and skips all checks of the upgrade path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), pattern(patterns::CHART_VERSION))]
    pub version: Option<String>,
    /// Values that override all others. Maps are merged, lists are replaced, null removes a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Values,
    /// The chart repository: one that the operator allows, or that of the profile or the version map. Defaults to the
    /// profile's repository, then to the version map's, then to the first repository that the operator allows, which is
    /// GitLab's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<ChartRepository>,
}

/// A chart repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartRepository {
    /// URL of the repository.
    #[schemars(length(max = 2048), pattern("^(http|https|oci)://.+$"))]
    pub url: String,
    /// The Secret with `username` and `password`, in the form that Flux reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Defaults that several instances share.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.bnerd.com",
    version = "v1alpha1",
    kind = "GitlabProfile",
    plural = "gitlabprofiles",
    singular = "gitlabprofile",
    shortname = "glprofile",
    derive = "PartialEq",
    doc = "Defaults that several GitlabInstances share.",
    printcolumn(
        name = "PG-Topology",
        type_ = "string",
        json_path = ".spec.defaults.postgres.topology"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GitlabProfileSpec {
    /// Defaults for fields that an instance does not set.
    #[serde(default)]
    pub defaults: ProfileDefaults,
    /// How Flux installs the instances of this profile. Only administrators should be able to write profiles.
    #[serde(default)]
    pub release: ProfileRelease,
}

/// How Flux installs the instances of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRelease {
    /// `ServiceAccount` in the instance's namespace that Flux impersonates to install the chart, instead of the one
    /// that the operator creates. An administrator creates it in that namespace with the RBAC permissions that the
    /// chart needs. Anyone who can write an instance in that namespace uses these permissions through the values of the
    /// chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub service_account_name: Option<String>,
    /// Chart repository for instances that do not set one. It need not be among the repositories that the operator
    /// allows for all instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<ChartRepository>,
}

/// Defaults for fields that an instance does not set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileDefaults {
    /// Defaults for a managed database.
    #[serde(default)]
    pub postgres: PostgresDefaults,
    /// Defaults for a managed Redis.
    #[serde(default)]
    pub redis: RedisDefaults,
    /// Defaults for a managed Elasticsearch.
    #[serde(default)]
    pub elasticsearch: ElasticsearchDefaults,
    /// Cron schedule of backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 6, max = 100), pattern(patterns::CRON))]
    pub backup_schedule: Option<String>,
    /// Values for the chart. All other values override them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Values,
}

/// Defaults for a managed database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresDefaults {
    /// `standalone` or `ha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Number of servers with `topology: ha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// Whether connections go through `PgBouncer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbouncer: Option<bool>,
}

/// Defaults for a managed Redis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisDefaults {
    /// `standalone` or `ha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Number of servers with `topology: ha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
}

/// Defaults for a managed Elasticsearch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticsearchDefaults {
    /// Number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
}

/// The name of the map that instances use.
pub const DEFAULT_MAP: &str = "default";

/// The chart version for each version of GitLab.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.bnerd.com",
    version = "v1alpha1",
    kind = "GitlabVersionMap",
    plural = "gitlabversionmaps",
    singular = "gitlabversionmap",
    shortname = "glvm",
    derive = "PartialEq",
    doc = "The chart version for each version of GitLab. Instances use the map with the name default.",
    printcolumn(name = "Latest", type_ = "string", json_path = ".spec.aliases.latest"),
    printcolumn(name = "Stable", type_ = "string", json_path = ".spec.aliases.stable"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GitlabVersionMapSpec {
    /// The chart for each version of GitLab.
    #[serde(default)]
    pub versions: BTreeMap<String, ChartOf>,
    /// Aliases of versions, such as `latest`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// Chart repository for instances that do not set one, neither themselves nor through their profile. It need not be
    /// among the repositories that the operator allows for all instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<ChartRepository>,
}

/// The chart for one version of GitLab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartOf {
    /// Version of the chart.
    #[schemars(length(min = 1, max = 63), pattern(patterns::CHART_VERSION))]
    pub chart_version: String,
    /// Values for the chart of this version. They override the profile's values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Values,
}
