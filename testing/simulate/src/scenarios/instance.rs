//! `PostgresInstance` by itself: servers that are reached, or not.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Map, Value, json};
use stanchion_kernel::Scope;
use stanchion_kernel::driver::Operator;
use stanchion_kernel::telemetry::Metrics;
use stanchion_user::{DefaultInstance, InstanceController, Openings, Setup};

use super::database::Database;
use super::user::INSTANCE;
use super::{SECRET, apply};
use crate::fuzz::Changeable;
use crate::network::sql::PORT;
use crate::scenario::{CANARY, Kind, NAMESPACE, Operation, Scenario, Seat};
use crate::server::OPERATOR;

/// The scenario of servers.
pub struct Instance {
    database: Database,
}

impl Scenario for Instance {
    const NAME: &'static str = "instance";
    const SQL: bool = true;
    const PRIMARY: &'static [Kind] = &[INSTANCE];
    const OTHERS: &'static [Kind] = &[SECRET];

    fn definitions() -> Vec<CustomResourceDefinition> {
        let ours = |definition: &CustomResourceDefinition| definition.spec.group == "db.example.com";
        super::definitions(ours)
    }

    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)> {
        let names: Vec<String> = (0..random.random_range(1..=3)).map(|n| format!("i{n}")).collect();
        let length = random.random_range(10_000_u64..240_000);
        let mut operations: Vec<(Duration, Operation)> = Vec::new();
        for _ in 0..random.random_range(2..=14) {
            let at = Duration::from_millis(random.random_range(0..length));
            let name = names.choose(random).expect("a name");
            let what = match random.random_range(0..10) {
                0..5 => Operation::Apply(INSTANCE, instance(name, random)),
                5 => Operation::Delete(INSTANCE, name.clone()),
                6 => Operation::Apply(SECRET, admin(random.random())),
                7 => Operation::Delete(SECRET, "admin".to_owned()),
                _ => {
                    let health = ["down", "silent", "up", "up"].choose(random);
                    Operation::Outside(json!({ "health": health }))
                }
            };
            operations.push((at, what));
        }
        let end = Duration::from_millis(length);
        operations.push((end, Operation::Apply(SECRET, admin(true))));
        for name in &names {
            let last = if random.random_bool(0.25) {
                Operation::Delete(INSTANCE, name.clone())
            } else {
                Operation::Apply(INSTANCE, instance(name, random))
            };
            operations.push((end, last));
        }
        operations.sort_by_key(|(at, _)| *at);
        operations
    }

    fn new() -> Self {
        Self {
            database: Database::with(&[]),
        }
    }

    async fn prepare(&self, client: &Client) {
        let secrets = crate::user::api(client, &SECRET);
        apply(&secrets, &admin(true)).await;
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let metrics = Metrics::new("simulated");
        let setup = Setup {
            default_instance: DefaultInstance::new(None),
            openings: Openings::default(),
            pools: self.database.pools(&seat, &metrics),
            fingerprints: self.database.fingerprints(),
        };
        operator.add(InstanceController::new(setup), scope);
    }

    fn outside(&self, what: &Value) {
        self.database.outside(what);
    }

    fn heal(&self) {
        self.database.heal();
    }

    fn world(&self) -> Value {
        Value::Null
    }

    fn left(&self) -> Vec<String> {
        Vec::new()
    }

    fn comparable(end: &mut Value) {
        super::without_marks(end);
        let instances = &mut end["objects"][INSTANCE.kind];
        for instance in instances.as_object_mut().into_iter().flat_map(Map::values_mut) {
            // What is known of a server that was reached once is kept.
            let fails = super::condition(instance, "Connected")["status"] != "True";
            if fails {
                instance["status"]["version"] = Value::Null;
                instance["status"]["systemIdentifier"] = Value::Null;
            }
        }
    }
}

fn admin(right: bool) -> Value {
    let (name, password) = OPERATOR;
    let password = if right {
        password.to_owned()
    } else {
        format!("{CANARY}-wrong")
    };
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "admin" },
        "stringData": { "username": name, "password": password },
    })
}

fn instance(name: &str, random: &mut StdRng) -> Value {
    let ports = [PORT, PORT, PORT, 1];
    let mut spec = json!({
        "host": "127.0.0.1", "port": ports.choose(random), "adminSecretRef": { "name": "admin" },
        "tls": { "mode": "disable" }, "maxConnections": random.random_range(1..9),
    });
    if random.random_bool(0.3) {
        spec["allowedNamespaces"] = json!({ "names": [NAMESPACE] });
    }
    if random.random_bool(0.3) {
        spec["database"] = json!(["postgres", "missing"].choose(random));
    }
    object(name, &spec)
}

fn object(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "metadata": { "name": name }, "spec": spec })
}

impl Changeable for Instance {
    const KIND: Kind = INSTANCE;
    const READY: &'static str = "Connected";
    const ONE_WAY: &'static [(&'static str, &'static str)] = &[];

    fn base(&self, name: &str) -> Value {
        let spec = json!({
            "host": "127.0.0.1", "port": self.database.server().port(), "adminSecretRef": { "name": "admin" },
            "tls": { "mode": "disable" }, "allowedNamespaces": { "names": [NAMESPACE] },
            "databases": [{ "names": ["app"], "privileges": ["CONNECT"] }], "roles": [{ "names": ["team"] }],
        });
        object(name, &spec)
    }
}
