//! What the controllers of all scopes share.

use std::sync::Arc;
use std::time::Duration;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_postgres::Pools;

use crate::claims::Claims;
use crate::metrics::{OTLP_NAMES, PolicyMetrics};

/// The usual [`Setup::turn`].
pub const TURN: Duration = Duration::from_secs(20);

/// What the controllers of all scopes share. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Tells whether a password has changed, without keeping it.
    pub fingerprints: Arc<FingerprintKey>,
    /// Who declares what, in every namespace.
    pub claims: Claims,
    /// The numbers.
    pub metrics: PolicyMetrics,
    /// How long a pass waits for its turn at a database before it lets others go first.
    pub turn: Duration,
}

impl Setup {
    /// With nothing claimed yet. Call it once per process: its numbers are registered here.
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
