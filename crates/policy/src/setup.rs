//! State that the controllers of all scopes share.

use std::sync::Arc;
use std::time::Duration;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::Pools;
use stanchion_postgres::lock::TURN;

use crate::claims::Claims;
use crate::metrics::{OTLP_NAMES, PolicyMetrics};

/// State that the controllers of all scopes share. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Detects changed passwords without keeping them.
    pub fingerprints: Arc<FingerprintKey>,
    /// The claims of all policies, in every namespace.
    pub claims: Claims,
    pub metrics: PolicyMetrics,
    /// How long a reconcile waits for its turn at a database before it lets others go first.
    pub turn: Duration,
}

impl Setup {
    /// A setup without claims. Call it once for each process: it registers the metrics.
    pub fn new(pools: Pools, fingerprints: Arc<FingerprintKey>, metrics: &Metrics) -> Self {
        metrics.rename_for_otlp(OTLP_NAMES);
        Self {
            pools,
            fingerprints,
            claims: Claims::default(),
            metrics: metrics.register(PolicyMetrics::register),
            turn: TURN,
        }
    }
}
