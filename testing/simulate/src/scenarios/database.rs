//! The PostgreSQL server of a scenario, and the operator's way to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::{PoolSettings, Pools};

use super::roles;
use crate::network::sql::{Health, Hub};
use crate::scenario::Seat;
use crate::server::{OPERATOR, Server};

/// A server, how it is reached, and the key that seals marks in it.
pub(super) struct Database {
    hub: Hub,
    fingerprints: Arc<FingerprintKey>,
    /// Nothing outside breaks any more.
    healed: AtomicBool,
}

impl Database {
    /// A server with these databases.
    pub(super) fn with(databases: &[&str]) -> Self {
        let server = Server::of_this_thread();
        for database in databases {
            let create = format!("CREATE DATABASE {database} OWNER {}", OPERATOR.0);
            server.query("postgres", &create);
        }
        Self {
            hub: Hub::new(server),
            fingerprints: Arc::new(FingerprintKey::generate()),
            healed: AtomicBool::new(false),
        }
    }

    /// The server itself.
    pub(super) fn server(&self) -> &Server {
        self.hub.server()
    }

    pub(super) fn fingerprints(&self) -> Arc<FingerprintKey> {
        Arc::clone(&self.fingerprints)
    }

    /// The connections of a replica.
    pub(super) fn pools(&self, seat: &Seat, metrics: &Metrics) -> Pools {
        let settings = PoolSettings {
            dialer: seat.dialer(&self.hub),
            ..PoolSettings::default()
        };
        Pools::new(settings, Arc::new(metrics.postgres().clone()))
    }

    /// How the server is reached, and for how long it has been so.
    pub(super) fn health(&self) -> (Health, Duration) {
        self.hub.health()
    }

    /// Something happens to the server: `health` is how it is reached, `bucket` how the bucket is, `sql` is what somebody
    /// does by hand.
    pub(super) fn outside(&self, what: &Value) {
        // Users may be late: they act in order, and wait for what they have asked for.
        if !self.is_healed() {
            if let Some(health) = what["health"].as_str() {
                self.hub.set(health_of(health));
            }
            if let Some(health) = what["bucket"].as_str() {
                self.hub.bucket().set(health_of(health));
            }
        }
        if let Some(sql) = what["sql"].as_str() {
            // What is changed by hand may not be there yet.
            let database = what["database"].as_str().unwrap_or("postgres");
            let _ = self.server().try_query(database, sql);
        }
    }

    /// From now on, it answers.
    pub(super) fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
        self.hub.set(Health::Up);
        self.hub.bucket().set(Health::Up);
    }

    /// Whether nothing outside breaks any more.
    pub(super) fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// What is on it, and which of these passwords each login accepts.
    pub(super) fn world(&self, passwords: &[String]) -> Value {
        let server = self.server();
        let mut world = roles::snapshot(server);
        let logins: Map<String, Value> = roles::logins(server)
            .into_iter()
            .map(|role| {
                let known = passwords.iter().map(|password| server.logs_in(&role, password));
                let known: Value = known.collect();
                (role, known)
            })
            .collect();
        world["logins"] = json!(logins);
        world
    }
}

fn health_of(word: &str) -> Health {
    match word {
        "down" => Health::Down,
        "silent" => Health::Silent,
        _ => Health::Up,
    }
}
