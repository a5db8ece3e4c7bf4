//! `PostgresUser` and `PostgresInstance`, on a real server.

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
use stanchion_postgres::ConnectionConfig;
use stanchion_user::{DefaultInstance, InstanceController, Openings, Setup, UserController};

use super::database::Database;
use super::{SECRET, apply, roles};
use crate::fuzz::Changeable;
use crate::scenario::{CANARY, Kind, NAMESPACE, Operation, Scenario, Seat};
use crate::server::OPERATOR;

const USER: Kind = Kind {
    api_version: "db.example.com/v1alpha1",
    kind: "PostgresUser",
    plural: "postgresusers",
};
pub(super) const INSTANCE: Kind = Kind {
    api_version: "db.example.com/v1alpha1",
    kind: "PostgresInstance",
    plural: "postgresinstances",
};

const SECRETS: [&str; 2] = ["one", "two"];
/// The databases that are there before anybody asks for one.
const DATABASES: [&str; 2] = ["app", "other"];

/// How the Secret of an application may be called: it is renamed at times.
const LOGINS: [&str; 2] = ["login", "access"];

/// The scenario of users.
pub struct User {
    database: Database,
}

impl Scenario for User {
    const NAME: &'static str = "user";
    const SQL: bool = true;
    const PRIMARY: &'static [Kind] = &[USER];
    const OTHERS: &'static [Kind] = &[INSTANCE, SECRET];

    fn definitions() -> Vec<CustomResourceDefinition> {
        let ours = |definition: &CustomResourceDefinition| {
            [USER.kind, INSTANCE.kind].contains(&definition.spec.names.kind.as_str())
        };
        super::definitions(ours)
    }

    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)> {
        let names: Vec<String> = (0..random.random_range(1..=3)).map(|n| format!("u{n}")).collect();
        let length = random.random_range(10_000_u64..240_000);
        let secrets = |random: &mut StdRng| {
            SECRETS
                .map(|name| Operation::Apply(SECRET, secret(name, &random.random_range(0..100).to_string())))
        };
        let mut operations: Vec<(Duration, Operation)> = secrets(random)
            .map(|operation| (Duration::ZERO, operation))
            .into();
        for _ in 0..random.random_range(2..=14) {
            let at = Duration::from_millis(random.random_range(0..length));
            let name = names.choose(random).expect("a name");
            operations.push((at, anything(name, random)));
        }
        let end = Duration::from_millis(length);
        operations.extend(SECRETS.map(|name| (end, Operation::Apply(SECRET, secret(name, "last")))));
        for name in &names {
            let last = if random.random_bool(0.25) {
                Operation::Delete(USER, name.clone())
            } else {
                user(name, random)
            };
            operations.push((end, last));
        }
        operations.sort_by_key(|(at, _)| *at);
        operations
    }

    fn new() -> Self {
        let database = Database::with(&DATABASES);
        let roles = "CREATE ROLE team; CREATE ROLE readers";
        database.server().query("postgres", roles);
        Self { database }
    }

    async fn prepare(&self, client: &Client) {
        let (name, password) = OPERATOR;
        let admin = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "admin" },
            "stringData": { "username": name, "password": password },
        });
        let secrets = crate::user::api(client, &SECRET);
        apply(&secrets, &admin).await;
        for name in SECRETS {
            apply(&secrets, &secret(name, "first")).await;
        }
        let instance = json!({
            "apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "metadata": { "name": "main" },
            "spec": {
                "host": "127.0.0.1", "port": self.database.server().port(), "adminSecretRef": { "name": "admin" },
                "tls": { "mode": "disable" }, "allowedNamespaces": { "names": [NAMESPACE] },
            },
        });
        apply(&crate::user::api(client, &INSTANCE), &instance).await;
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let metrics = Metrics::new("simulated");
        let admin = self.database.server().url("postgres");
        let setup = Setup {
            default_instance: DefaultInstance::new(Some(
                ConnectionConfig::parse(&admin.into()).expect("a target"),
            )),
            openings: Openings {
                roles: vec!["team".into(), "readers".into()],
                ..Openings::default()
            },
            pools: self.database.pools(&seat, &metrics),
            fingerprints: self.database.fingerprints(),
        };
        operator.add(UserController::new(setup.clone()), scope);
        operator.add(InstanceController::new(setup), scope);
    }

    fn outside(&self, what: &Value) {
        self.database.outside(what);
    }

    fn heal(&self) {
        self.database.heal();
    }

    fn world(&self) -> Value {
        self.database.world(&SECRETS.map(|name| password(name, "last")))
    }

    fn left(&self) -> Vec<String> {
        let server = self.database.server();
        let kept = |name: &String| {
            !["team", "readers"].contains(&name.as_str()) && !DATABASES.contains(&name.as_str())
        };
        roles::names(server)
            .into_iter()
            .filter(kept)
            .map(|name| format!("{name} is still on the server"))
            .collect()
    }

    fn comparable(end: &mut Value) {
        let users = &mut end["objects"][USER.kind];
        for user in users.as_object_mut().into_iter().flat_map(Map::values_mut) {
            for field in ["roleOID", "roleSeal", "appliedSecretHash", "drift"] {
                user["status"][field] = Value::Null;
            }
            // The status names the last correction until the spec changes.
            for condition in user["status"]["conditions"].as_array_mut().into_iter().flatten() {
                if condition["type"] == "Drifted" && condition["status"] == "False" {
                    condition["reason"] = Value::Null;
                    condition["message"] = Value::Null;
                }
            }
        }
        // Generated passwords.
        for (name, secret) in end["objects"][SECRET.kind].as_object_mut().into_iter().flatten() {
            if LOGINS.iter().any(|login| name.ends_with(login)) {
                let keys: Vec<String> = secret["data"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(key, _)| key.clone())
                    .collect();
                secret["data"] = json!(keys);
            }
        }
        super::without_marks(end);
    }
}

fn anything(name: &str, random: &mut StdRng) -> Operation {
    match random.random_range(0..16) {
        0..7 => user(name, random),
        7..9 => Operation::Delete(USER, name.to_owned()),
        9 | 10 => {
            let which = SECRETS.choose(random).unwrap_or(&"one");
            Operation::Apply(SECRET, secret(which, &random.random_range(0..100).to_string()))
        }
        11 => Operation::Delete(SECRET, format!("{name}-login")),
        12 | 13 => {
            let health = ["down", "silent", "up", "up"].choose(random);
            Operation::Outside(json!({ "health": health }))
        }
        _ => {
            let drift = ["CONNECTION LIMIT 77", "NOLOGIN", "CREATEDB", "NOINHERIT"]
                .choose(random)
                .unwrap_or(&"NOLOGIN");
            Operation::Outside(json!({ "sql": format!("ALTER ROLE {name} {drift}") }))
        }
    }
}

/// What an object stands on follows from its name: whether it has a database of its own, and on which way it reaches
/// its server.
fn user(name: &str, random: &mut StdRng) -> Operation {
    let choice = |random: &mut StdRng, all: &[Value]| all.choose(random).cloned().unwrap_or_default();
    let privileges = choice(
        random,
        &[
            json!(["CONNECT"]),
            json!(["CONNECT", "READ"]),
            json!(["CONNECT", "TEMPORARY", "WRITE"]),
            json!(["CONNECT", "CREATE", "SELECT"]),
        ],
    );
    let mut spec = json!({
        "username": name,
        "database": DATABASES.choose(random),
        "privileges": privileges,
        // What is not set is left as it is, and would show the way there.
        "role": { "connectionLimit": random.random_range(1..9), "inherit": random.random::<bool>(), "createDatabase": false },
        "memberOf": choice(random, &[json!([]), json!([{ "role": "team" }]), json!([{ "role": "team" }, { "role": "readers" }])]),
    });
    if random.random_bool(0.6) {
        spec["passwordSecretRef"] = json!({ "name": SECRETS.choose(random) });
    } else {
        spec["password"] = json!({ "generate": { "length": random.random_range(20..40) } });
        spec["credentialsSecret"] =
            json!({ "name": format!("{name}-{}", LOGINS.choose(random).unwrap_or(&"login")) });
    }
    if name == "u1" {
        spec["database"] = json!("u1_db");
        // An owner who lost a privilege that was granted is not one who never got it.
        spec["privileges"] = json!(["CONNECT"]);
        spec["createDatabase"] =
            json!({ "enabled": true, "owner": true, "schemas": ["app"], "deletionPolicy": "Delete" });
    }
    if name == "u2" {
        spec["instanceRef"] = json!({ "name": "main" });
    }
    let object = json!({ "apiVersion": USER.api_version, "kind": USER.kind, "metadata": { "name": name }, "spec": spec });
    Operation::Apply(USER, object)
}

fn password(secret: &str, number: &str) -> String {
    format!("{CANARY}-{secret}-{number}")
}

fn secret(name: &str, number: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
        "stringData": { "password": password(name, number) },
    })
}

impl Changeable for User {
    const KIND: Kind = USER;
    const ONE_WAY: &'static [(&'static str, &'static str)] = &[
        (".createDatabase", "a database that was made is kept"),
        (".deletionPolicy", "it decides what is left"),
        (
            ".onDelete",
            "a deletion waits until it may give objects to this role",
        ),
        (".suspend", "what is suspended stays as it was"),
        (".mode", "what is only planned stays as it was"),
        (".driftPolicy", "what is only reported stays as it was"),
        (".membershipPolicy", "additional memberships are kept"),
        (".existingRolePolicy", "the role exists"),
        (
            ".role.validUntil",
            "an attribute that the spec does not name is left as it is",
        ),
    ];

    fn base(&self, name: &str) -> Value {
        json!({
            "apiVersion": USER.api_version, "kind": USER.kind, "metadata": { "name": name },
            "spec": {
                "username": name, "database": "app", "privileges": ["CONNECT"],
                "passwordSecretRef": { "name": "one" },
                "role": {
                    "login": true, "inherit": true, "createDatabase": false, "createRole": false, "replication": false,
                    "bypassRLS": false, "superuser": false, "connectionLimit": 5,
                },
            },
        })
    }

    /// An attribute that is no longer set is left as it was.
    fn leads_elsewhere(field: &str) -> bool {
        let elsewhere = Self::ONE_WAY
            .iter()
            .any(|(one_way, _)| field.starts_with(one_way));
        elsewhere || field.starts_with(".role") && (field.ends_with("(taken away)") || field == ".role")
    }

    fn outside_of(&self, name: &str) -> Value {
        roles::of_one(self.database.server(), name)
    }

    fn forget(&self, name: &str) {
        let server = self.database.server();
        let made =
            format!("SELECT quote_ident(datname) FROM pg_database WHERE datdba::regrole::text = '{name}'");
        for database in server.column("postgres", &made) {
            let _ = server.try_query("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
        }
        for database in DATABASES.iter().chain(&["postgres"]) {
            let _ = server.try_query(database, &format!("DROP OWNED BY {name} CASCADE"));
        }
        let _ = server.try_query("postgres", &format!("DROP ROLE {name}"));
    }
}
