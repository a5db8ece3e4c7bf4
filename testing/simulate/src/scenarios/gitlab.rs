//! `GitlabInstance`: Flux and the operator of Redis are played, the database is brought along and does not answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DynamicObject};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};
use stanchion_gitlab::storage::Buckets;
use stanchion_gitlab::{GitlabController, Setup};
use stanchion_kernel::Scope;
use stanchion_kernel::driver::Operator;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_sandbox::fake_operators::{DEFINITIONS, FakeOperators};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{CONFIG_MAP, SECRET, apply, without_marks};
use crate::fuzz::Changeable;
use crate::scenario::{CANARY, Kind, NAMESPACE, Operation, Scenario, Seat};

const INSTANCE: Kind = Kind {
    api_version: "k8s.bnerd.com/v1alpha1",
    kind: "GitlabInstance",
    plural: "gitlabinstances",
};
const VERSION_MAP: Kind = Kind {
    api_version: "k8s.bnerd.com/v1alpha1",
    kind: "GitlabVersionMap",
    plural: "gitlabversionmaps",
};
const RELEASE: Kind = Kind {
    api_version: "helm.toolkit.fluxcd.io/v2",
    kind: "HelmRelease",
    plural: "helmreleases",
};
const REPOSITORY: Kind = Kind {
    api_version: "source.toolkit.fluxcd.io/v1",
    kind: "HelmRepository",
    plural: "helmrepositories",
};
const REDIS: Kind = Kind {
    api_version: "redis.redis.opstreelabs.in/v1beta2",
    kind: "Redis",
    plural: "redis",
};
const POSTGRES: Kind = Kind {
    api_version: "pgv2.percona.com/v2",
    kind: "PerconaPGCluster",
    plural: "perconapgclusters",
};
const ELASTICSEARCH: Kind = Kind {
    api_version: "elasticsearch.k8s.elastic.co/v1",
    kind: "Elasticsearch",
    plural: "elasticsearches",
};

/// Versions and their charts. Nobody goes back, for the way back is refused.
const VERSIONS: [(&str, &str); 4] = [
    ("17.3.0", "8.3.0"),
    ("17.5.5", "8.5.5"),
    ("17.8.7", "8.8.7"),
    ("17.11.7", "8.11.8"),
];

/// The scenario of GitLab.
pub struct Gitlab {
    fingerprints: Arc<FingerprintKey>,
    /// They play as long as this is there.
    players: Mutex<JoinSet<()>>,
}

impl Scenario for Gitlab {
    const NAME: &'static str = "gitlab";
    const PODS: Option<Duration> = Some(Duration::from_secs(2));
    const PRIMARY: &'static [Kind] = &[INSTANCE];
    const OTHERS: &'static [Kind] = &[SECRET, RELEASE, REPOSITORY, REDIS];

    fn definitions() -> Vec<CustomResourceDefinition> {
        let parse = |text: &&str| -> Vec<CustomResourceDefinition> {
            serde_saphyr::from_multiple(text).expect("definitions")
        };
        let ours = super::definitions(|definition| definition.spec.group == "k8s.bnerd.com");
        ours.into_iter()
            .chain(DEFINITIONS.iter().flat_map(parse))
            .collect()
    }

    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)> {
        let names: Vec<String> = (0..random.random_range(1..=2)).map(|n| format!("g{n}")).collect();
        let length = random.random_range(30_000_u64..400_000);
        let mut times: Vec<u64> = (0..random.random_range(2..=12))
            .map(|_| random.random_range(0..length))
            .collect();
        times.sort_unstable();
        let mut operations = Vec::new();
        let mut version = 0;
        for at in times {
            let at = Duration::from_millis(at);
            let name = names.choose(random).expect("a name");
            let what = match random.random_range(0..12) {
                0..7 => {
                    version = (version + random.random_range(0..2)).min(VERSIONS.len() - 1);
                    Operation::Apply(INSTANCE, instance(name, version, random))
                }
                7 => Operation::Delete(INSTANCE, name.clone()),
                8 => Operation::Apply(SECRET, brought("redis", random)),
                9 => Operation::Apply(SECRET, brought("s3", random)),
                10 => Operation::Delete(RELEASE, format!("{name}-gitlab")),
                _ => {
                    let patch = json!({ "spec": { "interval": "7m" } });
                    Operation::Merge(RELEASE, format!("{name}-gitlab"), patch)
                }
            };
            operations.push((at, what));
        }
        let end = Duration::from_millis(length);
        for name in &names {
            let last = if random.random_bool(0.2) {
                Operation::Delete(INSTANCE, name.clone())
            } else {
                Operation::Apply(INSTANCE, instance(name, version, random))
            };
            operations.push((end, last));
        }
        operations
    }

    fn new() -> Self {
        Self {
            fingerprints: Arc::new(FingerprintKey::generate()),
            players: Mutex::default(),
        }
    }

    async fn prepare(&self, client: &Client) {
        let versions: Map<String, Value> = VERSIONS
            .iter()
            .map(|(version, chart)| ((*version).to_owned(), json!({ "chartVersion": chart })))
            .collect();
        let map = json!({
            "apiVersion": VERSION_MAP.api_version, "kind": VERSION_MAP.kind, "metadata": { "name": "default" },
            "spec": { "versions": versions, "aliases": { "latest": "17.11.7" } },
        });
        let maps: Api<DynamicObject> = Api::all_with(client.clone(), &VERSION_MAP.resource());
        apply(&maps, &map).await;
        let secrets = crate::user::api(client, &SECRET);
        for (name, values) in secrets_brought(0) {
            apply(&secrets, &secret(name, &values)).await;
        }
        let charts = |chart: &str| {
            let version = VERSIONS.iter().find(|(_, known)| *known == chart)?;
            Some(version.0.to_owned())
        };
        let playing = FakeOperators::new(client.clone())
            .within(NAMESPACE)
            .pace(Duration::from_secs(3))
            .charts(charts)
            .start(&CancellationToken::new());
        *self.players.lock().unwrap() = playing;
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let metrics = Metrics::new("simulated");
        let settings = PoolSettings {
            dialer: seat.refusing(),
            ..PoolSettings::default()
        };
        let setup = Setup {
            pools: Pools::new(settings, Arc::new(metrics.postgres().clone())),
            fingerprints: Arc::clone(&self.fingerprints),
            tenants: Arc::default(),
        };
        operator.add(GitlabController::new(setup), scope);
    }

    fn world(&self) -> Value {
        Value::Null
    }

    fn left(&self) -> Vec<String> {
        Vec::new()
    }

    /// A Redis and its password outlive the instance: nobody's data is dropped with it.
    fn is_kept(kind: &str, name: &str) -> bool {
        kind == REDIS.kind || kind == SECRET.kind && name.ends_with("-redis-auth")
    }

    fn comparable(end: &mut Value) {
        without_marks(end);
        let objects = &mut end["objects"];
        // The Redis of a deleted instance is as the operator left it, if it came to that before the deletion.
        let instances = objects[INSTANCE.kind].as_object().cloned().unwrap_or_default();
        for (kind, suffix) in [(REDIS.kind, "-redis"), (SECRET.kind, "-redis-auth")] {
            if let Some(kept) = objects[kind].as_object_mut() {
                let is_deleted = |name: &str| !instances.contains_key(name);
                kept.retain(|name, _| !name.strip_suffix(suffix).is_some_and(is_deleted));
            }
        }
        for release in objects[RELEASE.kind]
            .as_object_mut()
            .into_iter()
            .flat_map(Map::values_mut)
        {
            // How often it was upgraded on the way.
            release["status"] = Value::Null;
        }
        for redis in objects[REDIS.kind]
            .as_object_mut()
            .into_iter()
            .flat_map(Map::values_mut)
        {
            redis["status"] = Value::Null;
        }
        for (name, secret) in objects[SECRET.kind].as_object_mut().into_iter().flatten() {
            if name.ends_with("-redis-auth") {
                secret["data"] = Value::Null;
            }
        }
        for instance in objects[INSTANCE.kind]
            .as_object_mut()
            .into_iter()
            .flat_map(Map::values_mut)
        {
            if instance["spec"]["suspend"] == true {
                *instance = instance["spec"].clone();
            }
        }
    }
}

fn secret(name: &str, values: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values })
}

fn secrets_brought(number: u32) -> [(&'static str, Value); 3] {
    let mut buckets = json!({
        "accessKey": "access", "secretKey": format!("{CANARY}-{number}"), "endpoint": "https://s3.example.com",
        "region": "eu-1",
    });
    for class in Buckets::NAMES {
        buckets[format!("bucket.{class}")] = json!(format!("b-{class}"));
    }
    let password = format!("{CANARY}-{number}");
    [
        (
            "pg",
            json!({ "host": "127.0.0.1", "port": "1", "password": password }),
        ),
        (
            "redis",
            json!({ "host": "redis.example.com", "port": "6379", "password": password }),
        ),
        ("s3", buckets),
    ]
}

fn brought(name: &str, random: &mut StdRng) -> Value {
    let all = secrets_brought(random.random_range(1..100));
    let values = all.into_iter().find(|(known, _)| *known == name);
    secret(name, &values.map(|(_, values)| values).unwrap_or_default())
}

/// An instance. What it stands on follows from its name: databases that were made stay, so that changing it would leave
/// traces of the way.
fn instance(name: &str, version: usize, random: &mut StdRng) -> Value {
    let redis = if name == "g0" {
        json!({ "managed": true })
    } else {
        json!({ "managed": false, "credentialsSecret": "redis" })
    };
    let mut spec = json!({
        "version": VERSIONS[version].0,
        "edition": "ce",
        "domains": { "gitlab": format!("{name}.example.com") },
        "postgres": { "managed": false, "credentialsSecret": "pg" },
        "redis": redis,
        "objectStorage": { "credentialsSecret": "s3" },
        "upgrade": { "waitForMigrations": false },
    });
    if random.random() {
        spec["domains"]["registry"] = json!("registry.example.com");
    }
    if random.random_bool(0.3) {
        spec["helm"] = json!({ "values": { "global": { "time_zone": "UTC" } } });
    }
    if random.random_bool(0.2) {
        spec["nodeSelector"] = json!({ "disk": "fast" });
    }
    json!({ "apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "metadata": { "name": name }, "spec": spec })
}

impl Changeable for Gitlab {
    const KIND: Kind = INSTANCE;
    const ONE_WAY: &'static [(&'static str, &'static str)] = &[
        (".version", "an older version than the one that runs is refused"),
        (".postgres", "a database that was made is kept"),
        (".redis", "a Redis that was made is kept"),
        (".elasticsearch", "an Elasticsearch that was made is kept"),
        (".suspend", "what is suspended stays as it was"),
    ];

    fn base(&self, name: &str) -> Value {
        instance(name, 0, &mut StdRng::seed_from_u64(0))
    }

    fn outlived_by(name: &str) -> Vec<(Kind, String)> {
        vec![
            (CONFIG_MAP, format!("{name}-gitlab-installed")),
            // The Secret with its login goes with it.
            (POSTGRES, format!("{name}-pg")),
            (ELASTICSEARCH, format!("{name}-es")),
            (REDIS, format!("{name}-redis")),
            (SECRET, format!("{name}-redis-auth")),
        ]
    }
}
