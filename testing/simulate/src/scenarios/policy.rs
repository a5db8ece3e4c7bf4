//! `PostgresPolicy`, on a real server: each policy has a database of its own, so that they do not conflict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Map, Value, json};
use stanchion_kernel::Scope;
use stanchion_kernel::driver::Operator;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_policy::{PolicyController, Setup};
use stanchion_postgres::{PoolSettings, Pools};

use super::{CONFIG_MAP, SECRET, apply, roles};
use crate::network::sql::{Health, Hub};
use crate::scenario::{CANARY, Kind, Operation, Scenario, Seat};
use crate::server::{OPERATOR, Server};

const POLICY: Kind = Kind {
    api_version: "pgroles.io/v1alpha1",
    kind: "PostgresPolicy",
    plural: "postgrespolicies",
};
const PLAN: Kind = Kind {
    api_version: "pgroles.io/v1alpha1",
    kind: "PostgresPolicyPlan",
    plural: "postgrespolicyplans",
};

const POLICIES: [&str; 2] = ["p0", "p1"];

/// The story of policies.
pub struct Policy {
    hub: Hub,
    fingerprints: Arc<FingerprintKey>,
    /// Nothing outside breaks any more.
    healed: AtomicBool,
}

impl Scenario for Policy {
    const NAME: &'static str = "policy";
    const SQL: bool = true;
    const PRIMARY: &'static [Kind] = &[POLICY];
    const OTHERS: &'static [Kind] = &[PLAN, CONFIG_MAP, SECRET];

    fn definitions() -> Vec<CustomResourceDefinition> {
        let ours = |definition: &CustomResourceDefinition| definition.spec.group == "pgroles.io";
        stanchion_api::crds().into_iter().filter(ours).collect()
    }

    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)> {
        let names = POLICIES.get(..random.random_range(1..=2)).unwrap_or(&POLICIES);
        let length = random.random_range(10_000_u64..240_000);
        let mut operations: Vec<(Duration, Operation)> = Vec::new();
        for _ in 0..random.random_range(2..=12) {
            let at = Duration::from_millis(random.random_range(0..length));
            let name = names.choose(random).expect("a name");
            operations.push((at, anything(name, random)));
        }
        let end = Duration::from_millis(length);
        operations.push((end, Operation::Apply(SECRET, password("last"))));
        for name in names {
            // Roles and schemas outlive their policy, so that each policy is there at the end.
            operations.push((end, policy(name, random)));
        }
        operations.sort_by_key(|(at, _)| *at);
        operations
    }

    fn new() -> Self {
        let server = Server::of_this_thread();
        for name in POLICIES {
            server.query(
                "postgres",
                &format!("CREATE DATABASE {name} OWNER {}", OPERATOR.0),
            );
            server.query(
                name,
                "CREATE SCHEMA app; CREATE TABLE app.orders (n int); CREATE TABLE app.items (n int)",
            );
        }
        Self {
            hub: Hub::new(server),
            fingerprints: Arc::new(FingerprintKey::generate()),
            healed: AtomicBool::new(false),
        }
    }

    async fn prepare(&self, client: &Client) {
        let secrets = crate::user::api(client, &SECRET);
        for name in POLICIES {
            let url = json!({ "DATABASE_URL": self.hub.server().url(name) });
            let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": url });
            apply(&secrets, &secret).await;
        }
        apply(&secrets, &password("first")).await;
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let metrics = Metrics::new("simulated");
        let settings = PoolSettings {
            dialer: seat.network.dialer(seat.replica, &self.hub),
            ..PoolSettings::default()
        };
        let pools = Pools::new(settings, Arc::new(metrics.postgres().clone()));
        let setup = Setup::new(pools, Arc::clone(&self.fingerprints), &metrics);
        operator.add(PolicyController::new(setup, scope.clone()), scope);
    }

    fn outside(&self, what: &Value) {
        if let Some(health) = what["health"].as_str() {
            // Users may be late: they act in order, and wait for what they have asked for.
            if !self.healed.load(Ordering::Relaxed) {
                self.hub.set(match health {
                    "down" => Health::Down,
                    "silent" => Health::Silent,
                    _ => Health::Up,
                });
            }
        }
        if let (Some(database), Some(sql)) = (what["database"].as_str(), what["sql"].as_str()) {
            // A role that is changed by hand may not be there yet.
            let _ = self.hub.server().try_query(database, sql);
        }
    }

    fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
        self.hub.set(Health::Up);
    }

    fn world(&self) -> Value {
        let server = self.hub.server();
        let mut world = roles::snapshot(server);
        let logins: Map<String, Value> = roles::logins(server)
            .into_iter()
            .map(|role| {
                let known = server.logs_in(&role, &format!("{CANARY}-last"));
                (role, json!(known))
            })
            .collect();
        world["logins"] = logins.into();
        world
    }

    /// Roles and schemas stay; what was granted to the roles goes.
    fn left(&self) -> Vec<String> {
        let server = self.hub.server();
        let granted = "SELECT 'schema ' || nspname FROM pg_namespace WHERE nspacl::text ~ 'p[01]_' \
                       UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relacl::text ~ 'p[01]_' \
                       UNION ALL SELECT 'default privileges' FROM pg_default_acl WHERE defaclacl::text ~ 'p[01]_'";
        let inside = POLICIES.iter().flat_map(|name| server.column(name, granted));
        inside
            .map(|what| format!("privileges on {what} are still there"))
            .collect()
    }

    fn comparable(end: &mut Value) {
        // How many plans there were, and what is left of them, shows the way.
        for kind in [PLAN.kind, CONFIG_MAP.kind] {
            end["objects"][kind] = Value::Null;
        }
        let policies = &mut end["objects"][POLICY.kind];
        for policy in policies.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let status = &policy["status"];
            policy["status"] = json!({ "conditions": status["conditions"] });
            for condition in policy["status"]["conditions"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                condition["message"] = Value::Null;
            }
        }
        super::without_marks(end);
    }
}

fn anything(name: &str, random: &mut StdRng) -> Operation {
    match random.random_range(0..14) {
        0..7 => policy(name, random),
        7 => Operation::Delete(POLICY, name.to_owned()),
        8 | 9 => Operation::Apply(SECRET, password(&random.random_range(0..100).to_string())),
        10 | 11 => {
            let health = ["down", "silent", "up", "up"].choose(random);
            Operation::Outside(json!({ "health": health }))
        }
        _ => {
            let drift = [
                format!("GRANT DELETE ON app.orders TO {name}_reader"),
                format!("REVOKE ALL ON app.orders FROM {name}_reader"),
                format!("ALTER ROLE {name}_app NOLOGIN"),
                format!("ALTER ROLE {name}_app CONNECTION LIMIT 77"),
            ];
            Operation::Outside(json!({ "database": name, "sql": drift.choose(random) }))
        }
    }
}

/// The roles and the schema follow from the name: they stay when they are no longer declared.
fn policy(name: &str, random: &mut StdRng) -> Operation {
    let (app, reader) = (format!("{name}_app"), format!("{name}_reader"));
    let mut grants =
        vec![json!({ "role": app, "privileges": ["USAGE"], "object": { "type": "schema", "name": "app" } })];
    if random.random() {
        grants.push(json!({ "role": app, "privileges": ["SELECT", "INSERT"], "object": { "type": "table", "schema": "app", "name": "*" } }));
    }
    if random.random() {
        grants.push(json!({ "role": reader, "privileges": ["SELECT"], "object": { "type": "table", "schema": "app", "name": "orders" } }));
    }
    let mut spec = json!({
        "connection": { "secretRef": { "name": name } },
        "deletionPolicy": "Revoke",
        "roles": [
            {
                "name": app, "login": true, "connection_limit": random.random_range(1..9),
                "password": { "secretRef": { "name": "password" }, "secretKey": "password" },
            },
            { "name": reader, "login": false },
        ],
        "grants": grants,
        "memberships": [],
    });
    if random.random() {
        spec["memberships"] = json!([{ "role": reader, "members": [{ "name": app }] }]);
    }
    if random.random_bool(0.3) {
        spec["default_privileges"] = json!([{
            "owner": OPERATOR.0, "schema": "app",
            "grant": [{ "role": reader, "privileges": ["SELECT"], "on_type": "table" }],
        }]);
    }
    let object = json!({ "apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": { "name": name }, "spec": spec });
    Operation::Apply(POLICY, object)
}

fn password(number: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "password" },
        "stringData": { "password": format!("{CANARY}-{number}") },
    })
}
