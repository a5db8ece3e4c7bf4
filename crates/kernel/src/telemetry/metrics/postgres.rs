//! Metrics of the database connections. The `postgres` crate does not know Prometheus; it notifies an observer, and
//! reports the number of connections on request.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};
use stanchion_postgres::{Pools, StatementObserver, Statements};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Statements, for all databases: the observer for [`Pools`].
#[derive(Clone, Debug)]
pub struct PostgresMetrics {
    reads: Counter,
    writes: Counter,
}

impl PostgresMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let statements = Family::<KindLabel, Counter>::default();
        registry.register(
            "stanchion_postgres_statements",
            "SQL statements sent",
            statements.clone(),
        );
        Self {
            reads: statements.get_or_create_owned(&KindLabel { kind: "read" }),
            writes: statements.get_or_create_owned(&KindLabel { kind: "write" }),
        }
    }
}

impl StatementObserver for PostgresMetrics {
    fn observe(&self, statements: &Statements<'_>) {
        let counter = if statements.reading {
            &self.reads
        } else {
            &self.writes
        };
        counter.inc_by(u64::try_from(statements.count).unwrap_or(u64::MAX));
    }
}

/// Maximum number of unreachable servers that are named.
const MAX_NAMED: usize = 50;

/// Connections, for all servers, counted at each scrape.
pub(super) struct PoolCollector(pub(super) Pools);

impl std::fmt::Debug for PoolCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolCollector").finish_non_exhaustive()
    }
}

impl Collector for PoolCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (mut open, mut idle) = (0, 0);
        let mut broken = Vec::new();
        for (server, counts) in self.0.counts() {
            open += counts.open;
            idle += counts.idle;
            if counts.broken {
                broken.push(server);
            }
        }
        let help = "Open database connections";
        let mut family =
            encoder.encode_descriptor("stanchion_postgres_connections", help, None, MetricType::Gauge)?;
        for (state, count) in [("idle", idle), ("active", open.saturating_sub(idle))] {
            let labels = [("state", state)];
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        let help = "Servers whose circuit breaker is open: the last attempt to connect failed";
        let mut family =
            encoder.encode_descriptor("stanchion_postgres_circuit_open", help, None, MetricType::Gauge)?;
        // Objects name servers, and each name would be a series.
        let (named, others) = broken.split_at(broken.len().min(MAX_NAMED));
        for server in named {
            let labels = [("server", server.as_str())];
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        if !others.is_empty() {
            let labels = [("server", "others")];
            let count = i64::try_from(others.len()).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
