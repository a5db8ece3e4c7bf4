//! Redis, run by OT-CONTAINER-KIT's operator.
//!
//! Its custom resources have no status, so readiness comes from their `StatefulSets`. It generates no password either,
//! so this controller generates one, once.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;
use rand::CryptoRng;
use rand::distr::{Alphanumeric, SampleString as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use stanchion_api::gitlab::Topology;
use stanchion_kernel::external::ExternalKind;

use super::kinds::{self, REDIS, REDIS_REPLICATION, REDIS_SENTINEL};
use super::pods::claim;
use super::request::RedisRequest;
use super::{Readiness, text};
use crate::login::{Address, RedisLogin, RedisServer, SecretKey};
use crate::secret_keys::{Keys, Unusable};

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
/// That of Sentinels that state none: their operator's default.
const UNNAMED_MASTER: &str = "myMaster";
/// The most Sentinels that are listed: the object may be anybody's.
const MOST_SENTINELS: u32 = 9;
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

/// The login. Sentinels have no password, and all of them are listed, because one may be gone. Existing Sentinels say
/// themselves how many they are, and what they call the servers: they may be somebody else's.
pub(crate) fn login(request: &RedisRequest<'_>, sentinels: Option<&DynamicObject>) -> RedisLogin {
    let name = name(request.instance);
    let domain = format!("{}.svc", request.namespace);
    let server = match request.topology {
        Topology::Standalone => RedisServer::At(Address {
            host: format!("{name}.{domain}"),
            port: SERVER_PORT,
        }),
        Topology::Ha => {
            let (master, count) = sentinels.map_or((MASTER, SENTINELS), group);
            let sentinel = |number| Address {
                host: format!("{name}-sentinel-{number}.{name}-sentinel-headless.{domain}"),
                port: SENTINEL_PORT,
            };
            RedisServer::Asked {
                master: master.to_owned(),
                sentinels: (0..count).map(sentinel).collect(),
            }
        }
    };
    RedisLogin {
        server,
        password: SecretKey {
            secret: auth_name(request.instance),
            key: PASSWORD.to_owned(),
        },
    }
}

/// What these Sentinels call the servers, and how many Sentinels there are.
fn group(sentinels: &DynamicObject) -> (&str, u32) {
    let master = text(sentinels, "/spec/redisSentinelConfig/masterGroupName");
    let count = sentinels
        .data
        .pointer("/spec/clusterSize")
        .and_then(Value::as_u64);
    let count = count
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(SENTINELS);
    (master.unwrap_or(UNNAMED_MASTER), count.min(MOST_SENTINELS))
}

/// Checks the Secret with the password, which a user may have created.
pub(crate) fn check_password(secret: &Secret) -> Result<(), Unusable> {
    let mut keys = Keys::of(secret);
    keys.sealed(PASSWORD);
    keys.finish(())
}

#[cfg(test)]
mod tests {
    use insta::{assert_debug_snapshot, assert_yaml_snapshot};

    use super::*;
    use crate::backends::request::tests::{fullest, live, requests, spec};

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
        assert_debug_snapshot!(login(&requests(&fullest()).redis(), None));
    }

    #[test]
    fn one_server_is_always_at_the_same_address() {
        let spec = spec(json!({}));
        let address = Address {
            host: "shop-redis.gl.svc".into(),
            port: 6379,
        };
        assert_eq!(
            login(&requests(&spec).redis(), None).server,
            RedisServer::At(address)
        );
    }

    #[test]
    fn existing_sentinels_say_what_they_watch_and_how_many_they_are() {
        let of = |spec: Value| {
            let live = live(json!({ "spec": spec }));
            match login(&requests(&fullest()).redis(), Some(&live)).server {
                RedisServer::Asked { master, sentinels } => (master, sentinels.len()),
                RedisServer::At(address) => panic!("{address:?}"),
            }
        };
        let theirs = json!({ "clusterSize": 5, "redisSentinelConfig": { "masterGroupName": "theirs" } });
        assert_eq!(of(theirs), ("theirs".into(), 5));
        assert_eq!(of(json!({})), ("myMaster".into(), 3));
        assert_eq!(
            of(json!({ "clusterSize": 4_000_000_000_u32 })).1,
            9,
            "nobody fills the memory"
        );
        assert_eq!(of(json!({ "clusterSize": u64::MAX })).1, 3);
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
