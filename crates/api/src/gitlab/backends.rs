//! The backends of a GitLab: managed by another operator, or provided by the user.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns;

/// `standalone`: one server. `ha`: several servers with one leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Topology {
    Ha,
    Standalone,
}

/// The volume of each server of a managed backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Size of the volume, as a quantity such as `50Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "patterns::quantity")]
    pub size: Option<Quantity>,
    /// Storage class of the volume. Defaults to the cluster's default storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub storage_class: Option<String>,
}

/// The database. The operator creates a managed database once and afterwards changes only its size. The database
/// outlives the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Postgres {
    /// Whether the operator creates a `PerconaPGCluster`. Without it, `credentialsSecret` names an existing database.
    #[serde(default)]
    pub managed: bool,
    /// `standalone` or `ha`. Defaults to the profile's value, then to `standalone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Whether connections go through `PgBouncer`. Defaults to the profile's value, then to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbouncer: Option<bool>,
    /// Number of servers with `topology: ha`. Defaults to the profile's value, then to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// PostgreSQL major version of a managed database that does not exist yet. Defaults to the newest version that the
    /// version of GitLab supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 14, max = 18))]
    pub version: Option<u32>,
    /// The volume of each managed server.
    #[serde(default)]
    pub storage: Volume,
    /// The Secret of an existing database, with `host`, `port` and `password`. `database` and `username` default to
    /// `gitlabhq_production` and `gitlab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

/// Redis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redis {
    /// Whether the operator creates a `Redis`, or with `topology: ha` a `RedisReplication` and a `RedisSentinel`.
    /// Without it, `credentialsSecret` names an existing Redis.
    #[serde(default)]
    pub managed: bool,
    /// `standalone` or `ha`. Defaults to the profile's value, then to `standalone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Number of servers with `topology: ha`. Defaults to the profile's value, then to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// The volume of each managed server.
    #[serde(default)]
    pub storage: Volume,
    /// The Secret of an existing Redis, with `host`, `port` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

/// Elasticsearch. The chart has no value for it: status.elasticsearch contains the address to enter in GitLab's
/// settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elasticsearch {
    /// Whether the operator creates an `Elasticsearch`.
    #[serde(default)]
    pub managed: bool,
    /// Number of nodes. Defaults to the profile's value, then to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub nodes: Option<u32>,
    /// The volume of each node.
    #[serde(default)]
    pub storage: Volume,
}

/// The S3 buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectStorage {
    /// The Secret with `accessKey`, `secretKey`, `endpoint`, `region` and the name of each bucket under a key such as
    /// `bucket.lfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}

/// The mail server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Smtp {
    /// The Secret with `host`, `port`, `username` and `password`. It may also contain `from`, `replyTo`,
    /// `authentication` and `starttls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(patterns::NAME))]
    pub credentials_secret: Option<String>,
}
