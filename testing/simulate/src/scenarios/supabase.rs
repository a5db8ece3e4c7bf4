//! `SupabaseProject`: on a real PostgreSQL server and a model of S3, with simulated pods. Each project has a database of
//! its own, and all are on one server.

mod end;
mod objects;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stanchion_kernel::Scope;
use stanchion_kernel::driver::Operator;
use stanchion_kernel::telemetry::Metrics;
use stanchion_supabase::{ProjectController, Setup};
use tokio::net::TcpListener;

use self::objects::{
    AUTOSCALER, BUDGET, DEPLOYMENT, INGRESS, NETWORK_POLICY, PROJECT, SERVICE, anything, project, storage,
};
use super::database::Database;
use super::{CONFIG_MAP, SECRET, apply, roles};
use crate::fuzz::Changeable;
use crate::network::bucket;
use crate::network::sql::Health;
use crate::scenario::{Kind, NAMESPACE, Operation, Scenario, Seat};
use crate::server::OPERATOR;

/// The first is there at the end. The other one may be deleted, so that it always removes what it made.
const PROJECTS: [&str; 2] = ["project0", "project1"];
/// A login of a project that is not in the cluster: the first project on a server gets other names than the rest, and
/// which one that is would show the way.
const FIRST: &str = "CREATE ROLE authenticator; DO $$ BEGIN EXECUTE format('COMMENT ON ROLE authenticator IS %L', \
     '[stanchion SupabaseProject elsewhere/first ' || (SELECT oid FROM pg_database WHERE datname = 'postgres') || ']'); END $$";

/// The scenario of projects.
pub struct Supabase {
    database: Database,
    /// Where the bucket is reached.
    port: AtomicU16,
}

impl Scenario for Supabase {
    const NAME: &'static str = "supabase";
    const SQL: bool = true;
    const PODS: Option<Duration> = Some(Duration::from_secs(2));
    const PRIMARY: &'static [Kind] = &[PROJECT];
    const OTHERS: &'static [Kind] = &[
        SECRET,
        CONFIG_MAP,
        SERVICE,
        DEPLOYMENT,
        INGRESS,
        NETWORK_POLICY,
        BUDGET,
        AUTOSCALER,
    ];
    const CLAIMS: &'static [&'static str] = &["Ready", "PostgreSQLConnected"];

    fn definitions() -> Vec<CustomResourceDefinition> {
        let ours = |definition: &CustomResourceDefinition| definition.spec.names.kind == PROJECT.kind;
        super::definitions(ours)
    }

    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)> {
        let names = PROJECTS.get(..random.random_range(1..=2)).unwrap_or(&PROJECTS);
        let length = random.random_range(20_000_u64..240_000);
        let mut operations: Vec<(Duration, Operation)> = names
            .iter()
            .map(|name| (Duration::ZERO, Operation::Apply(PROJECT, project(name, random))))
            .collect();
        for _ in 0..random.random_range(1..=8) {
            let at = Duration::from_millis(random.random_range(0..length));
            let name = names.choose(random).expect("a name");
            operations.push((at, anything(name, random)));
        }
        let end = Duration::from_millis(length);
        operations.push((end, Operation::Outside(json!({ "bucket": "up" }))));
        operations.push((end, Operation::Apply(SECRET, storage(true, 100))));
        for name in names {
            let last = if *name != PROJECTS[0] && random.random_bool(0.3) {
                Operation::Delete(PROJECT, (*name).to_owned())
            } else {
                let mut last = project(name, random);
                last["spec"]["deletionPolicy"] = json!("Delete");
                last["spec"]["suspend"] = json!(false);
                Operation::Apply(PROJECT, last)
            };
            operations.push((end, last));
        }
        operations.sort_by_key(|(at, _)| *at);
        operations
    }

    fn new() -> Self {
        let database = Database::with(&PROJECTS);
        database.server().query("postgres", FIRST);
        Self {
            database,
            port: AtomicU16::new(bucket::PORT),
        }
    }

    async fn leave_simulation(&self) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        self.port.store(port, Ordering::Relaxed);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(bucket::serve(stream));
            }
        });
    }

    async fn prepare(&self, client: &Client) {
        let secrets = crate::user::api(client, &SECRET);
        for name in PROJECTS {
            let (user, password) = OPERATOR;
            let admin = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("db-{name}") },
                "stringData": {
                    "host": "127.0.0.1", "port": self.database.server().port().to_string(), "database": name,
                    "username": user, "password": password,
                },
            });
            apply(&secrets, &admin).await;
        }
        let mut bucket = storage(true, 0);
        let port = self.port.load(Ordering::Relaxed);
        bucket["stringData"]["endpoint"] = json!(format!("http://127.0.0.1:{port}"));
        apply(&secrets, &bucket).await;
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let metrics = Metrics::new("simulated");
        let setup = Setup {
            pools: self.database.pools(&seat, &metrics),
            fingerprints: self.database.fingerprints(),
            allowed_images: Vec::new(),
        };
        operator.add(ProjectController::new(setup), scope);
    }

    fn outside(&self, what: &Value) {
        self.database.outside(what);
        let server = self.database.server();
        if let Some(name) = what["drop"].as_str() {
            // With its sessions, as an administrator would.
            let _ = server.try_query("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
            // A late user may do it after the end of all disturbances, and nobody would create it again.
            if self.database.is_healed() {
                self.create(name);
            }
        }
        if let Some(name) = what["create"].as_str() {
            self.create(name);
        }
    }

    fn heal(&self) {
        self.database.heal();
        for name in PROJECTS {
            self.create(name);
        }
    }

    fn lost_for(&self) -> Option<Duration> {
        let (health, since) = self.database.health();
        match health {
            Health::Up => None,
            // The connections are broken, and somebody has one.
            Health::Down => since.checked_sub(Duration::from_secs(20)),
            // Somebody asks, and waits for an answer.
            Health::Silent => since.checked_sub(Duration::from_secs(75)),
        }
    }

    fn world(&self) -> Value {
        self.database.world(&[])
    }

    fn left(&self) -> Vec<String> {
        PROJECTS
            .iter()
            .flat_map(|name| self.remains(name, &suffix(name)))
            .collect()
    }

    fn comparable(end: &mut Value) {
        end::comparable(end);
    }
}

impl Supabase {
    /// An administrator makes the database of a project, if it is not there.
    fn create(&self, name: &str) {
        let create = format!("CREATE DATABASE {name} OWNER {}", OPERATOR.0);
        let _ = self.database.server().try_query("postgres", &create);
    }

    /// What is still on the server of a project, by the suffix of its logins. The roles that all projects share stay.
    fn remains(&self, name: &str, suffix: &str) -> Vec<String> {
        let server = self.database.server();
        let made = format!(
            "SELECT 'role ' || rolname FROM pg_roles WHERE rolname LIKE '%{suffix}' \
             UNION ALL SELECT 'database ' || datname FROM pg_database WHERE datname LIKE '%{suffix}'"
        );
        let schemas = "SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_' \
                       AND nspname NOT IN ('public', 'information_schema', 'extensions')";
        let made = server.column("postgres", &made);
        let all = made.into_iter().chain(server.column(name, schemas));
        all.map(|what| format!("{what} of {name} is still on the server"))
            .collect()
    }
}

/// The suffix of a project's logins on a server that has others.
fn suffix(name: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(format!("{NAMESPACE}/{name}")).into();
    let [one, two, three, four, ..] = digest;
    format!("{one:02x}{two:02x}{three:02x}{four:02x}")
}

impl Changeable for Supabase {
    const KIND: Kind = PROJECT;
    const NAMES: [&'static str; 2] = PROJECTS;
    const ONE_WAY: &'static [(&'static str, &'static str)] = &[
        (".deletionPolicy", "it decides what is left"),
        (".suspend", "what is suspended stays as it was"),
        (".pooler", "its logins and the internal database are kept"),
        (".analytics", "its login and the internal database are kept"),
        (".functions", "its login is kept"),
        (".jwt.secretRef", "keys that were replaced do not come back"),
        (".database", "what was made in another database is kept"),
    ];

    fn base(&self, name: &str) -> Value {
        let spec = json!({
            "projectId": name,
            "database": { "secretRef": { "name": format!("db-{name}") }, "sslMode": "disable" },
            "storage": { "secretRef": { "name": "s3" } },
            "deletionPolicy": "Delete",
        });
        json!({ "apiVersion": PROJECT.api_version, "kind": PROJECT.kind, "metadata": { "name": name }, "spec": spec })
    }

    /// The roles and the databases of the project, and what is in its database.
    fn outside_of(&self, name: &str) -> Value {
        let (mut all, suffix) = (roles::snapshot(self.database.server()), suffix(name));
        let inside = all["inside"][name].take();
        for part in ["roles", "members", "databases"] {
            if let Some(lines) = all[part].as_array_mut() {
                lines.retain(|line| line.as_str().is_some_and(|line| line.contains(&suffix)));
            }
        }
        all["inside"] = inside;
        all
    }

    fn without_name(text: &str, name: &str) -> String {
        text.replace(name, "<name>").replace(&suffix(name), "<suffix>")
    }

    fn left_of(&self, name: &str) -> Vec<String> {
        self.remains(name, &suffix(name))
    }

    fn forget(&self, name: &str) {
        let server = self.database.server();
        let suffix = suffix(name);
        let databases =
            format!("SELECT datname FROM pg_database WHERE datname = '{name}' OR datname LIKE '%{suffix}'");
        for database in server.column("postgres", &databases) {
            server.query("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
        }
        let roles = format!("SELECT rolname FROM pg_roles WHERE rolname LIKE '%{suffix}'");
        for role in server.column("postgres", &roles) {
            server.query(
                "postgres",
                &format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"),
            );
        }
        server.query(
            "postgres",
            &format!("CREATE DATABASE {name} OWNER {}", OPERATOR.0),
        );
    }
}
