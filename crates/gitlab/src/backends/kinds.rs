//! The custom resources of third-party operators. They are written and read as JSON, because their fields are not
//! defined here.

use serde_json::{Value, json};
use stanchion_kernel::foreign::Foreign;

/// A PostgreSQL of Percona's operator.
pub static PERCONA: Foreign = Foreign {
    group: "pgv2.percona.com",
    kind: "PerconaPGCluster",
    plural: "perconapgclusters",
    versions: &["v2"],
};
/// A Redis of one server.
pub static REDIS: Foreign = redis("Redis", "redis");
/// A Redis of several servers, one of which is the master.
pub static REDIS_REPLICATION: Foreign = redis("RedisReplication", "redisreplications");
/// The Sentinels, which know the master.
pub static REDIS_SENTINEL: Foreign = redis("RedisSentinel", "redissentinels");
/// An Elasticsearch of Elastic's operator.
pub static ELASTICSEARCH: Foreign = Foreign {
    group: "elasticsearch.k8s.elastic.co",
    kind: "Elasticsearch",
    plural: "elasticsearches",
    versions: &["v1"],
};

const fn redis(kind: &'static str, plural: &'static str) -> Foreign {
    Foreign {
        group: "redis.redis.opstreelabs.in",
        kind,
        plural,
        versions: &["v1beta2"],
    }
}

/// An object of such a kind, in its preferred version.
pub(super) fn object(kind: &Foreign, name: &str, spec: &Value) -> Value {
    let version = kind.versions.first().copied().unwrap_or_default();
    json!({
        "apiVersion": format!("{}/{version}", kind.group),
        "kind": kind.kind,
        "metadata": { "name": name },
        "spec": spec,
    })
}
