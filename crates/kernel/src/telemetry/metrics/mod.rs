//! The metrics at `/metrics`.
//!
//! If controller-runtime or client-go has a name for a metric, that name and its labels are used: a dashboard for any
//! other operator works with this one. There is no global registry: a test creates its own [`Metrics`] and reads what
//! its operator did.
//!
//! Labels are bounded by their types. They are `&'static str`, so neither an object's name nor an error's text can
//! become a label; the one exception, the resource in a request's path, is checked by its parser.

mod api;
mod controller;
mod families;
mod postgres;
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

pub use api::ApiMetrics;
pub use controller::{ControllerMetrics, Finish, Queued, Running};
pub use postgres::PostgresMetrics;

/// The media type of [`Metrics::encode`], as a scraper expects it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of one operator. Clones share the metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    controllers: Arc<families::Families>,
    api: ApiMetrics,
    postgres: PostgresMetrics,
    leader: Family<LeaseLabel, Gauge>,
    otlp_names: Arc<Mutex<BTreeMap<&'static str, &'static str>>>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LeaseLabel {
    name: &'static str,
}

impl Metrics {
    /// An empty set for a binary of this version.
    pub fn new(version: &'static str) -> Self {
        let mut registry = Registry::default();
        registry.register(
            "stanchion_build",
            "What is running",
            Info::new(vec![("version", version)]),
        );
        registry.register_collector(Box::new(process::ProcessCollector));
        let leader = Family::<LeaseLabel, Gauge>::default();
        registry.register(
            "leader_election_master_status",
            "1 while this process holds the lease",
            leader.clone(),
        );
        Self {
            controllers: Arc::new(families::Families::register(&mut registry)),
            api: ApiMetrics::register(&mut registry),
            postgres: PostgresMetrics::register(&mut registry),
            leader,
            otlp_names: Arc::default(),
            registry: Arc::new(Mutex::new(registry)),
        }
    }

    /// Metrics of one controller. Its series exist, at zero, from this call on.
    pub fn controller(&self, name: &'static str) -> ControllerMetrics {
        ControllerMetrics::of(&self.controllers, name)
    }

    /// Metrics of the Kubernetes client.
    pub fn api(&self) -> &ApiMetrics {
        &self.api
    }

    /// Exports the connections of these pools at each scrape. Call it once per process.
    pub fn count_connections(&self, pools: stanchion_postgres::Pools) {
        self.registry
            .lock()
            .register_collector(Box::new(postgres::PoolCollector(pools)));
    }

    /// Metrics of SQL statements.
    pub fn postgres(&self) -> &PostgresMetrics {
        &self.postgres
    }

    /// Sets whether this process holds the Lease of that name.
    pub fn set_leader(&self, lease: &'static str, leads: bool) {
        self.leader
            .get_or_create(&LeaseLabel { name: lease })
            .set(i64::from(leads));
    }

    /// Adds a controller's own metric families. Call it once per process and family: a name that is registered twice is
    /// exported twice, which a scraper rejects.
    ///
    /// Register a counter without `_total`, which is appended on export.
    pub fn register<T>(&self, families: impl FnOnce(&mut Registry) -> T) -> T {
        families(&mut self.registry.lock())
    }

    /// Sets the names for an OpenTelemetry collector of families with other names in [`Metrics::encode`].
    pub fn rename_for_otlp(&self, names: impl IntoIterator<Item = (&'static str, &'static str)>) {
        let mut all = self.otlp_names.lock();
        all.extend(names);
    }

    /// The name for a collector, if it differs from the one at `/metrics`.
    pub fn otlp_name(&self, shown: &str) -> Option<&'static str> {
        let all = self.otlp_names.lock();
        all.get(shown).copied()
    }

    /// The exposition, in the format of [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut buffer = String::new();
        // Writing to a String cannot fail. If a collector fails, the text has no end mark, and a scraper rejects all of
        // it instead of using half of it.
        let _ = text::encode(&mut buffer, &self.registry.lock());
        buffer
    }
}

/// Seconds, from a fast response of an API server to a reconcile that exceeds its deadline.
fn seconds_histogram() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
    ])
}
