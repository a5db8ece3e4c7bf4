//! The chart, and what it is told.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::patterns;

/// Values for the chart: untyped, because they are the chart's.
pub type Values = Map<String, Value>;

/// The chart, and what it is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Helm {
    /// The chart's version, whatever the version map says: nothing is checked about the way to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), pattern(patterns::CHART_VERSION))]
    pub version: Option<String>,
    /// Values that win over all others: maps are joined, lists are replaced, null takes away.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub values: Values,
    /// Where the chart is: one of the repositories that the operator allows, or that of the profile or the version map.
    /// Without it, that of the profile, of the version map, or the first that the operator allows: GitLab's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<ChartRepository>,
}

/// A chart repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartRepository {
    /// Its address.
    #[schemars(length(max = 2048), pattern("^(http|https|oci)://.+$"))]
    pub url: String,
    /// The Secret with `username` and `password`, as Flux reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

pub(super) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
