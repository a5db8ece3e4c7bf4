//! `PostgresPolicy`, on a real server: each policy has a database of its own, so that they do not conflict.

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
use stanchion_policy::{PolicyController, Setup};

use super::database::Database;
use super::{CONFIG_MAP, SECRET, apply, roles};
use crate::fuzz::Changeable;
use crate::scenario::{CANARY, Kind, Operation, Scenario, Seat};
use crate::server::OPERATOR;

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

const POLICIES: [&str; 2] = ["policy0", "policy1"];

/// The scenario of policies.
pub struct Policy {
    database: Database,
}

impl Scenario for Policy {
    const NAME: &'static str = "policy";
    const SQL: bool = true;
    const PRIMARY: &'static [Kind] = &[POLICY];
    const OTHERS: &'static [Kind] = &[PLAN, CONFIG_MAP, SECRET];

    fn definitions() -> Vec<CustomResourceDefinition> {
        let ours = |definition: &CustomResourceDefinition| definition.spec.group == "pgroles.io";
        super::definitions(ours)
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
        let database = Database::with(&POLICIES);
        for name in POLICIES {
            let tables = "CREATE SCHEMA app; CREATE TABLE app.orders (n int); CREATE TABLE app.items (n int)";
            database.server().query(name, tables);
        }
        Self { database }
    }

    async fn prepare(&self, client: &Client) {
        let secrets = crate::user::api(client, &SECRET);
        for name in POLICIES {
            let url = json!({ "DATABASE_URL": self.database.server().url(name) });
            let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("db-{name}") }, "stringData": url });
            apply(&secrets, &secret).await;
        }
        apply(&secrets, &password("first")).await;
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let metrics = Metrics::new("simulated");
        let pools = self.database.pools(&seat, &metrics);
        let setup = Setup::new(pools, self.database.fingerprints(), &metrics);
        operator.add(PolicyController::new(setup, scope.clone()), scope);
    }

    fn outside(&self, what: &Value) {
        self.database.outside(what);
    }

    fn heal(&self) {
        self.database.heal();
    }

    fn world(&self) -> Value {
        self.database.world(&[format!("{CANARY}-last")])
    }

    /// Roles and schemas stay; what was granted to the roles goes.
    fn left(&self) -> Vec<String> {
        POLICIES.iter().flat_map(|name| self.granted(name)).collect()
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
        "connection": { "secretRef": { "name": format!("db-{name}") } },
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

impl Policy {
    /// Privileges in a policy's database that its roles still have.
    fn granted(&self, name: &str) -> Vec<String> {
        let granted = format!(
            "SELECT 'schema ' || nspname FROM pg_namespace WHERE nspacl::text ~ '{name}_' \
             UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relacl::text ~ '{name}_' \
             UNION ALL SELECT 'default privileges' FROM pg_default_acl WHERE defaclacl::text ~ '{name}_'"
        );
        let found = self.database.server().column(name, &granted).into_iter();
        found
            .map(|what| format!("privileges on {what} are still there"))
            .collect()
    }
}

impl Changeable for Policy {
    const KIND: Kind = POLICY;
    const NAMES: [&'static str; 2] = POLICIES;
    const STAYS: Option<&'static str> = Some("UnmanagedPrivileges");
    const ONE_WAY: &'static [(&'static str, &'static str)] = &[
        (".deletionPolicy", "it decides what is left"),
        (".reconciliation_mode", "what a weaker mode does not revoke stays"),
        (".mode", "what is only planned stays as it was"),
        (".approval", "what nobody approves stays as it was"),
        (".suspend", "what is suspended stays as it was"),
        (".schemas", "a schema that was made is kept"),
        (".retirements", "a role that was dropped is gone"),
        (".connection", "what was made in another database is kept"),
    ];

    fn base(&self, name: &str) -> Value {
        let (app, reader) = (format!("{name}_app"), format!("{name}_reader"));
        let spec = json!({
            "connection": { "secretRef": { "name": format!("db-{name}") } },
            "deletionPolicy": "Revoke",
            "roles": [
                {
                    "name": app, "login": true, "connection_limit": 3,
                    "password": { "secretRef": { "name": "password" }, "secretKey": "password" },
                },
                { "name": reader, "login": false },
            ],
            "grants": [
                { "role": app, "privileges": ["USAGE"], "object": { "type": "schema", "name": "app" } },
                { "role": app, "privileges": ["SELECT", "INSERT"], "object": { "type": "table", "schema": "app", "name": "*" } },
                { "role": reader, "privileges": ["SELECT"], "object": { "type": "table", "schema": "app", "name": "orders" } },
            ],
            "memberships": [{ "role": reader, "members": [{ "name": app }] }],
            "default_privileges": [{
                "owner": OPERATOR.0, "schema": "app",
                "grant": [{ "role": reader, "privileges": ["SELECT"], "on_type": "table" }],
            }],
        });
        json!({ "apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": { "name": name }, "spec": spec })
    }

    fn leads_elsewhere(field: &str) -> bool {
        // Roles are kept when they are no longer declared, and so is what they have.
        let declared = [
            ".roles",
            ".roles (taken away)",
            ".roles[].name",
            ".roles[].external",
        ];
        let elsewhere = |(one_way, _): &(&str, &str)| field.starts_with(one_way);
        Self::ONE_WAY.iter().any(elsewhere) || declared.contains(&field)
    }

    fn outside_of(&self, name: &str) -> Value {
        roles::of_one(self.database.server(), name)
    }

    fn left_of(&self, name: &str) -> Vec<String> {
        self.granted(name)
    }

    fn forget(&self, name: &str) {
        let server = self.database.server();
        let roles =
            format!("SELECT quote_ident(rolname) FROM pg_roles WHERE starts_with(rolname, '{name}_')");
        for role in server.column("postgres", &roles) {
            let _ = server.try_query(name, &format!("DROP OWNED BY {role} CASCADE"));
            let _ = server.try_query("postgres", &format!("DROP ROLE {role}"));
        }
    }
}
