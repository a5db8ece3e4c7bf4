//! Redis, run by OT-CONTAINER-KIT's operator.
//!
//! Its custom resources have no status, so readiness comes from their `StatefulSets`. It generates no password either,
//! so this controller generates one, once.

use k8s_openapi::api::apps::v1::StatefulSet;
use rand::CryptoRng;
use rand::distr::{Alphanumeric, SampleString as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use stanchion_api::gitlab::Topology;
use stanchion_kernel::external::ExternalKind;

use super::Readiness;
use super::kinds::{self, REDIS, REDIS_REPLICATION, REDIS_SENTINEL};
use super::pods::claim;
use super::request::RedisRequest;
use crate::login::{Address, RedisLogin, RedisServer, SecretKey};

/// The images, of the same version.
const SERVER_IMAGE: &str = "quay.io/opstree/redis:v7.0.15";
const SENTINEL_IMAGE: &str = "quay.io/opstree/redis-sentinel:v7.0.15";
/// Default disk size of a server.
const DISK: &str = "5Gi";
/// Number of Sentinels, independent of the number of servers: a majority must agree that a server is gone.
const SENTINELS: u32 = 3;
/// How many must agree.
const QUORUM: &str = "2";
/// The Sentinels' name for the servers.
const MASTER: &str = "gitlab";
/// Length of a generated password of letters and digits.
const PASSWORD_LENGTH: usize = 32;
/// The key of the password.
const PASSWORD: &str = "password";
const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The name of an instance's Redis, and of its Sentinels.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-redis")
}

/// The name of the Secret with its password.
pub(crate) fn auth_name(instance: &str) -> String {
    format!("{}-auth", name(instance))
}

/// Generates its password.
pub(crate) fn password(random: &mut dyn CryptoRng) -> SecretString {
    Alphanumeric.sample_string(random, PASSWORD_LENGTH).into()
}

pub(crate) fn auth(instance: &str, password: &SecretString) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": auth_name(instance) },
        "type": "Opaque",
        "stringData": { PASSWORD: password.expose_secret() },
    })
}

/// The kinds that a Redis of this topology consists of.
pub(crate) fn kinds(topology: Topology) -> &'static [&'static ExternalKind] {
    static ALONE: [&ExternalKind; 1] = [&REDIS];
    static WATCHED: [&ExternalKind; 2] = [&REDIS_REPLICATION, &REDIS_SENTINEL];
    match topology {
        Topology::Standalone => &ALONE,
        Topology::Ha => &WATCHED,
    }
}

/// The objects of a Redis, each with its kind.
pub fn objects(request: &RedisRequest<'_>) -> Vec<(&'static ExternalKind, Value)> {
    match request.topology {
        Topology::Standalone => vec![object(&REDIS, request, server(request))],
        Topology::Ha => {
            let mut servers = server(request);
            servers["clusterSize"] = json!(request.servers);
            vec![
                object(&REDIS_REPLICATION, request, servers),
                object(&REDIS_SENTINEL, request, sentinels(request)),
            ]
        }
    }
}

fn object(
    kind: &'static ExternalKind,
    request: &RedisRequest<'_>,
    mut spec: Value,
) -> (&'static ExternalKind, Value) {
    request.placement.place(&mut spec);
    // The images run as this user, who must own the disks.
    spec["podSecurityContext"] = json!({ "runAsUser": 1000, "fsGroup": 1000 });
    (kind, kinds::object(kind, &name(request.instance), &spec))
}

fn server(request: &RedisRequest<'_>) -> Value {
    json!({
        "kubernetesConfig": {
            "image": SERVER_IMAGE,
            "redisSecret": { "name": auth_name(request.instance), "key": PASSWORD },
        },
        "storage": { "volumeClaimTemplate": { "spec": claim(request.storage, DISK) } },
    })
}

fn sentinels(request: &RedisRequest<'_>) -> Value {
    let password = json!({ "name": auth_name(request.instance), "key": PASSWORD });
    json!({
        "clusterSize": SENTINELS,
        "kubernetesConfig": { "image": SENTINEL_IMAGE },
        "redisSentinelConfig": {
            "redisReplicationName": name(request.instance),
            "redisReplicationPassword": { "secretKeyRef": password },
            "masterGroupName": MASTER,
            "quorum": QUORUM,
        },
    })
}

/// The `StatefulSets` that show the readiness of a Redis of this topology.
pub fn stateful_sets(instance: &str, topology: Topology) -> Vec<String> {
    let servers = name(instance);
    match topology {
        Topology::Standalone => vec![servers],
        Topology::Ha => {
            let sentinels = format!("{servers}-sentinel");
            vec![servers, sentinels]
        }
    }
}

/// Whether all servers of this `StatefulSet` are ready; not ready if it does not exist.
pub fn readiness(name: &str, set: Option<&StatefulSet>) -> Readiness {
    let Some(set) = set else {
        return Readiness::NotYet(format!(
            "StatefulSet {name} does not exist yet: does Redis' operator run?"
        ));
    };
    let status = set.status.clone().unwrap_or_default();
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = status.ready_replicas.unwrap_or_default();
    let current = status.observed_generation >= set.metadata.generation;
    if current && ready >= 1 && ready == wanted {
        Readiness::Ready
    } else {
        Readiness::NotYet(format!("StatefulSet {name}: {ready} of {wanted} pods are ready"))
    }
}

/// The login. Sentinels have no password, and all of them are listed, because one may be gone.
pub(crate) fn login(request: &RedisRequest<'_>) -> RedisLogin {
    let name = name(request.instance);
    let domain = format!("{}.svc", request.namespace);
    let server = match request.topology {
        Topology::Standalone => RedisServer::At(Address {
            host: format!("{name}.{domain}"),
            port: SERVER_PORT,
        }),
        Topology::Ha => RedisServer::Asked {
            master: MASTER.to_owned(),
            sentinels: (0..SENTINELS)
                .map(|number| Address {
                    host: format!("{name}-sentinel-{number}.{name}-sentinel-headless.{domain}"),
                    port: SENTINEL_PORT,
                })
                .collect(),
        },
    };
    RedisLogin {
        server,
        password: SecretKey {
            secret: auth_name(request.instance),
            key: PASSWORD.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use insta::{assert_debug_snapshot, assert_yaml_snapshot};

    use super::*;
    use crate::backends::request::tests::{fullest, requests, spec};

    fn rendered(request: &RedisRequest<'_>) -> Vec<Value> {
        let (kinds, objects): (Vec<_>, Vec<_>) = objects(request).into_iter().unzip();
        assert_eq!(kinds, super::kinds(request.topology));
        objects
    }

    #[test]
    fn the_smallest() {
        let spec = spec(json!({}));
        assert_yaml_snapshot!(rendered(&requests(&spec).redis()));
    }

    #[test]
    fn the_fullest() {
        assert_yaml_snapshot!(rendered(&requests(&fullest()).redis()));
    }

    #[test]
    fn the_password() {
        let secret = auth("shop", &SecretString::from("hidden"));
        assert_eq!(secret["metadata"]["name"], "shop-redis-auth");
        assert_eq!(secret["stringData"], json!({ "password": "hidden" }));
    }

    #[test]
    fn a_password_is_long_and_new() {
        let (one, other) = (password(&mut rand::rng()), password(&mut rand::rng()));
        assert_eq!(one.expose_secret().len(), PASSWORD_LENGTH);
        assert_ne!(one.expose_secret(), other.expose_secret());
    }

    #[test]
    fn each_sentinel_has_an_address() {
        assert_debug_snapshot!(login(&requests(&fullest()).redis()));
    }

    #[test]
    fn one_server_is_always_at_the_same_address() {
        let spec = spec(json!({}));
        let address = Address {
            host: "shop-redis.gl.svc".into(),
            port: 6379,
        };
        assert_eq!(login(&requests(&spec).redis()).server, RedisServer::At(address));
    }

    #[test]
    fn it_is_ready_when_all_pods_are() {
        let set = |value: Value| -> StatefulSet { serde_json::from_value(value).unwrap() };
        let of = |wanted: i32, ready: i32, generation: i64| {
            let set = set(json!({
                "metadata": { "generation": generation },
                "spec": { "replicas": wanted, "selector": {}, "serviceName": "s", "template": {} },
                "status": { "replicas": wanted, "readyReplicas": ready, "observedGeneration": 1 },
            }));
            readiness("shop-redis", Some(&set))
        };
        let waiting = |ready, wanted| {
            Readiness::NotYet(format!(
                "StatefulSet shop-redis: {ready} of {wanted} pods are ready"
            ))
        };
        assert_eq!(of(3, 3, 1), Readiness::Ready);
        assert_eq!(of(3, 2, 1), waiting(2, 3));
        assert_eq!(of(0, 0, 1), waiting(0, 0));
        assert_eq!(of(3, 3, 2), waiting(3, 3));
        let absent = readiness("shop-redis", None);
        assert!(
            matches!(absent, Readiness::NotYet(why) if why.starts_with("StatefulSet shop-redis does not exist yet"))
        );
    }

    #[test]
    fn the_sentinels_have_a_stateful_set_too() {
        assert_eq!(stateful_sets("shop", Topology::Standalone), ["shop-redis"]);
        assert_eq!(
            stateful_sets("shop", Topology::Ha),
            ["shop-redis", "shop-redis-sentinel"]
        );
    }
}
