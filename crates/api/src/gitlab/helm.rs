//! The Helm chart and its values.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

pub(super) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
