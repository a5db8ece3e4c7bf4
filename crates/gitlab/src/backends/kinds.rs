//! The custom resources of third-party operators. They are written and read as JSON, because their fields are not
//! defined here.

use serde_json::{Value, json};
use stanchion_kernel::external::ExternalKind;

/// A PostgreSQL of Percona's operator.
pub static PERCONA: ExternalKind = ExternalKind {
    group: "pgv2.percona.com",
    kind: "PerconaPGCluster",
    plural: "perconapgclusters",
    versions: &["v2"],
};
/// A Redis of one server.
pub static REDIS: ExternalKind = redis("Redis", "redis");
/// A Redis of several servers, one of which is the master.
pub static REDIS_REPLICATION: ExternalKind = redis("RedisReplication", "redisreplications");
/// The Sentinels, which know the master.
pub static REDIS_SENTINEL: ExternalKind = redis("RedisSentinel", "redissentinels");
/// An Elasticsearch of Elastic's operator.
pub static ELASTICSEARCH: ExternalKind = ExternalKind {
    group: "elasticsearch.k8s.elastic.co",
    kind: "Elasticsearch",
    plural: "elasticsearches",
    versions: &["v1"],
};

const fn redis(kind: &'static str, plural: &'static str) -> ExternalKind {
    ExternalKind {
        group: "redis.redis.opstreelabs.in",
        kind,
        plural,
        versions: &["v1beta2"],
    }
}

/// An object of such a kind, in its preferred version.
pub(super) fn object(kind: &ExternalKind, name: &str, spec: &Value) -> Value {
    let version = kind.versions.first().copied().unwrap_or_default();
    json!({
        "apiVersion": format!("{}/{version}", kind.group),
        "kind": kind.kind,
        "metadata": { "name": name },
        "spec": spec,
    })
}
