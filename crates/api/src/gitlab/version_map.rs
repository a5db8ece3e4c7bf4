//! `GitlabVersionMap`: the chart version for each version of GitLab.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::helm::{ChartRepository, Values, free_form};
use super::patterns;

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
