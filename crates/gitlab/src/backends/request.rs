//! The requested backends: the spec overrides the profile, which overrides the defaults.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use stanchion_api::gitlab::{GitlabInstanceSpec, ProfileDefaults, Topology, Volume};
use stanchion_api::loose::Loose;

/// Default number of servers with `topology: ha`.
const SERVERS: u32 = 3;
/// Default number of Elasticsearch nodes.
const NODES: u32 = 1;

/// An instance with everything that configures its backends.
#[derive(Clone, Copy, Debug)]
pub struct BackendRequest<'a> {
    /// The instance's name.
    pub instance: &'a str,
    pub namespace: &'a str,
    pub spec: &'a GitlabInstanceSpec,
    /// The defaults of its profile, if it has one.
    pub profile: Option<&'a ProfileDefaults>,
}

/// Where the pods of a backend may run.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// Labels that a node must have.
    pub node_selector: &'a BTreeMap<String, String>,
    /// Taints that the pods tolerate.
    pub tolerations: &'a [Loose<Toleration>],
}

/// A requested managed PostgreSQL.
#[derive(Clone, Copy, Debug)]
pub struct PostgresRequest<'a> {
    /// The instance's name.
    pub instance: &'a str,
    /// The number of servers, one of which is the primary.
    pub servers: u32,
    /// Whether connections go through `PgBouncer`.
    pub pgbouncer: bool,
    /// The major version.
    pub version: u32,
    /// The disk of each server.
    pub storage: &'a Volume,
    /// Where they run.
    pub placement: Placement<'a>,
}

/// A requested managed Redis.
#[derive(Clone, Copy, Debug)]
pub struct RedisRequest<'a> {
    /// The instance's name.
    pub instance: &'a str,
    pub namespace: &'a str,
    /// One server, or several with Sentinels.
    pub topology: Topology,
    /// The number of servers.
    pub servers: u32,
    /// The disk of each server.
    pub storage: &'a Volume,
    /// Where they run.
    pub placement: Placement<'a>,
}

/// A requested managed Elasticsearch.
#[derive(Clone, Copy, Debug)]
pub struct ElasticsearchRequest<'a> {
    /// The instance's name.
    pub instance: &'a str,
    /// The number of nodes.
    pub nodes: u32,
    /// The disk of each node.
    pub storage: &'a Volume,
    /// Where they run.
    pub placement: Placement<'a>,
}

impl<'a> BackendRequest<'a> {
    /// The requested database, with this major version.
    pub fn postgres(self, version: u32) -> PostgresRequest<'a> {
        let spec = &self.spec.postgres;
        let profile = self.profile.map(|profile| &profile.postgres);
        let topology = topology(spec.topology, profile.and_then(|profile| profile.topology));
        let pgbouncer = spec.pgbouncer.or(profile.and_then(|profile| profile.pgbouncer));
        PostgresRequest {
            instance: self.instance,
            servers: servers(topology, spec.nodes, profile.and_then(|profile| profile.nodes)),
            pgbouncer: pgbouncer.unwrap_or(false),
            version,
            storage: &spec.storage,
            placement: self.placement(),
        }
    }

    pub fn redis(self) -> RedisRequest<'a> {
        let spec = &self.spec.redis;
        let profile = self.profile.map(|profile| &profile.redis);
        let topology = topology(spec.topology, profile.and_then(|profile| profile.topology));
        RedisRequest {
            instance: self.instance,
            namespace: self.namespace,
            topology,
            servers: servers(topology, spec.nodes, profile.and_then(|profile| profile.nodes)),
            storage: &spec.storage,
            placement: self.placement(),
        }
    }

    pub fn elasticsearch(self) -> ElasticsearchRequest<'a> {
        let spec = &self.spec.elasticsearch;
        let profile = self.profile.and_then(|profile| profile.elasticsearch.nodes);
        ElasticsearchRequest {
            instance: self.instance,
            nodes: spec.nodes.or(profile).unwrap_or(NODES),
            storage: &spec.storage,
            placement: self.placement(),
        }
    }

    fn placement(self) -> Placement<'a> {
        Placement {
            node_selector: &self.spec.node_selector,
            tolerations: &self.spec.tolerations,
        }
    }
}

fn topology(spec: Option<Topology>, profile: Option<Topology>) -> Topology {
    spec.or(profile).unwrap_or(Topology::Standalone)
}

fn servers(topology: Topology, spec: Option<u32>, profile: Option<u32>) -> u32 {
    match topology {
        Topology::Standalone => 1,
        Topology::Ha => spec.or(profile).unwrap_or(SERVERS),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A spec with these fields in addition to the required ones.
    pub(crate) fn spec(mut fields: Value) -> GitlabInstanceSpec {
        fields["domains"] = json!({ "gitlab": "git.example.com" });
        serde_json::from_value(fields).unwrap()
    }

    /// The instance `shop` with this spec and no profile.
    pub(crate) fn requests(spec: &GitlabInstanceSpec) -> BackendRequest<'_> {
        BackendRequest {
            instance: "shop",
            namespace: "gl",
            spec,
            profile: None,
        }
    }

    /// A spec with all fields of backends.
    pub(crate) fn fullest() -> GitlabInstanceSpec {
        let disk = json!({ "size": "100Gi", "storageClass": "fast" });
        spec(json!({
            "postgres": { "managed": true, "topology": "ha", "nodes": 5, "pgbouncer": true, "storage": disk },
            "redis": { "managed": true, "topology": "ha", "nodes": 5, "storage": disk },
            "elasticsearch": { "managed": true, "nodes": 3, "storage": disk },
            "nodeSelector": { "pool": "data", "zone": "a" },
            "tolerations": [{ "key": "dedicated", "operator": "Equal", "value": "data", "effect": "NoSchedule" }],
        }))
    }

    /// An object as read from the cluster.
    pub(crate) fn live(fields: Value) -> kube::core::DynamicObject {
        serde_json::from_value(fields).unwrap()
    }

    fn defaults(fields: Value) -> ProfileDefaults {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn without_a_word_each_has_one_server() {
        let spec = spec(json!({}));
        let requests = requests(&spec);
        let postgres = requests.postgres(16);
        assert_eq!((postgres.servers, postgres.pgbouncer), (1, false));
        assert_eq!(
            (requests.redis().topology, requests.redis().servers),
            (Topology::Standalone, 1)
        );
        assert_eq!(requests.elasticsearch().nodes, 1);
    }

    #[test]
    fn highly_available_means_three_unless_somebody_says_how_many() {
        let spec =
            spec(json!({ "postgres": { "topology": "ha" }, "redis": { "topology": "ha", "nodes": 5 } }));
        let requests = requests(&spec);
        assert_eq!((requests.postgres(16).servers, requests.redis().servers), (3, 5));
    }

    #[test]
    fn the_spec_wins_over_the_profile() {
        let profile = defaults(json!({
            "postgres": { "topology": "ha", "nodes": 7, "pgbouncer": true },
            "redis": { "topology": "ha", "nodes": 7 },
            "elasticsearch": { "nodes": 7 },
        }));
        let silent = spec(json!({}));
        let requests = BackendRequest {
            profile: Some(&profile),
            ..requests(&silent)
        };
        assert_eq!(
            (requests.postgres(16).servers, requests.postgres(16).pgbouncer),
            (7, true)
        );
        assert_eq!(
            (requests.redis().topology, requests.redis().servers),
            (Topology::Ha, 7)
        );
        assert_eq!(requests.elasticsearch().nodes, 7);

        let outspoken = spec(json!({
            "postgres": { "topology": "standalone", "pgbouncer": false },
            "redis": { "nodes": 3 },
            "elasticsearch": { "nodes": 2 },
        }));
        let requests = BackendRequest {
            spec: &outspoken,
            ..requests
        };
        assert_eq!(
            (requests.postgres(16).servers, requests.postgres(16).pgbouncer),
            (1, false)
        );
        assert_eq!(
            (requests.redis().topology, requests.redis().servers),
            (Topology::Ha, 3)
        );
        assert_eq!(requests.elasticsearch().nodes, 2);
    }
}
