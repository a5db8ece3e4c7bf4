//! `GitlabVersionMap`: which chart installs which version.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::helm::{ChartRepository, Values, free_form};
use super::patterns;

/// The name of the map that instances look into.
pub const DEFAULT_MAP: &str = "default";

/// Which chart installs which version of GitLab.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.bnerd.com",
    version = "v1alpha1",
    kind = "GitlabVersionMap",
    plural = "gitlabversionmaps",
    singular = "gitlabversionmap",
    shortname = "glvm",
    derive = "PartialEq",
    doc = "Which chart installs which version of GitLab. Instances look into the one that is called default.",
    printcolumn(name = "Latest", type_ = "string", json_path = ".spec.aliases.latest"),
    printcolumn(name = "Stable", type_ = "string", json_path = ".spec.aliases.stable"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GitlabVersionMapSpec {
    /// The chart of each version of GitLab.
    #[serde(default)]
    pub versions: BTreeMap<String, ChartOf>,
    /// Other names for versions, such as `latest`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// Where these charts are, for instances that name no repository, themselves or by their profile. It needs not be
    /// among the repositories that the operator allows to everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<ChartRepository>,
}

/// The chart of one version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartOf {
    /// The chart's version.
    #[schemars(length(min = 1, max = 63), pattern(patterns::CHART_VERSION))]
    pub chart_version: String,
    /// Values for the chart of this version; they win over the profile's.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Values,
}
