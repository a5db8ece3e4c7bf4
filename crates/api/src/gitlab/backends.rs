//! What a GitLab stands on: managed by another operator, or brought along.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns;

/// One server, or several of which one leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Topology {
    Ha,
    Standalone,
}

/// The disk of each server of a managed backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "patterns::quantity")]
    pub size: Option<Quantity>,
    /// Its storage class; the cluster's default one otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub storage_class: Option<String>,
}

/// The database. Once it is made, a managed one is left alone but for its size: it outlives the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Postgres {
    /// Whether a `PerconaPGCluster` is made.
    #[serde(default)]
    pub managed: bool,
    /// One server or several; the profile's by default, and one without a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Whether connections go through `PgBouncer`; the profile's by default, and no without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbouncer: Option<bool>,
    /// How many servers, with `topology: ha`; the profile's by default, and 3 without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// The major version of a managed one that is made new; by default the newest that the version of GitLab knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 14, max = 18))]
    pub version: Option<u32>,
    /// The disk of each managed server.
    #[serde(default)]
    pub storage: Volume,
    /// The Secret of a database that is brought along: `host`, `port`, `password`, and `database` and `username` where
    /// they are not `gitlabhq_production` and `gitlab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

/// Redis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redis {
    /// Whether a `Redis`, or a `RedisReplication` with a `RedisSentinel`, is made.
    #[serde(default)]
    pub managed: bool,
    /// One server or several; the profile's by default, and one without a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// How many servers, with `topology: ha`; the profile's by default, and 3 without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// The disk of each managed server.
    #[serde(default)]
    pub storage: Volume,
    /// The Secret of a Redis that is brought along: `host`, `port` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

/// Elasticsearch. The chart has no value for it: the address is in the status, for GitLab's own settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elasticsearch {
    /// Whether an `Elasticsearch` is made.
    #[serde(default)]
    pub managed: bool,
    /// How many nodes; the profile's by default, and 1 without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// The disk of each node.
    #[serde(default)]
    pub storage: Volume,
}

/// The S3 buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectStorage {
    /// The Secret with `accessKey`, `secretKey`, `endpoint`, `region` and the name of each bucket, such as
    /// `bucket.lfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

/// The mail server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Smtp {
    /// The Secret with `host`, `port`, `username` and `password`; also `from`, `replyTo`, `authentication` and
    /// `starttls` where they are not the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}
