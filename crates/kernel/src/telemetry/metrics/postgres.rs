//! The numbers of the database connections. The `postgres` crate knows nothing of Prometheus; a controller passes on
//! what it did.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// What a statement does to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// It looks.
    Read,
    /// It changes something.
    Write,
}

/// What a connection does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// It is open and waits to be used.
    Idle,
    /// A reconcile uses it.
    Active,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// Statements and connections, over all databases.
#[derive(Clone, Debug)]
pub struct PostgresMetrics {
    reads: Counter,
    writes: Counter,
    idle: Gauge,
    active: Gauge,
}

impl PostgresMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let statements = Family::<KindLabel, Counter>::default();
        let connections = Family::<StateLabel, Gauge>::default();
        registry.register(
            "stanchion_postgres_statements",
            "SQL statements sent",
            statements.clone(),
        );
        registry.register(
            "stanchion_postgres_connections",
            "Open database connections",
            connections.clone(),
        );
        Self {
            reads: statements.get_or_create_owned(&KindLabel { kind: "read" }),
            writes: statements.get_or_create_owned(&KindLabel { kind: "write" }),
            idle: connections.get_or_create_owned(&StateLabel { state: "idle" }),
            active: connections.get_or_create_owned(&StateLabel { state: "active" }),
        }
    }

    /// Counts statements that were sent.
    pub fn statements(&self, kind: StatementKind, count: u64) {
        match kind {
            StatementKind::Read => self.reads.inc_by(count),
            StatementKind::Write => self.writes.inc_by(count),
        };
    }

    /// The gauge of the connections in this state.
    pub fn connections(&self, state: ConnectionState) -> &Gauge {
        match state {
            ConnectionState::Idle => &self.idle,
            ConnectionState::Active => &self.active,
        }
    }
}
