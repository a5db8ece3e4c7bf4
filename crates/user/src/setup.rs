//! State that the controllers of this crate share.

use std::sync::Arc;
use std::time::Duration;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::{ConnectionConfig, Pools};

use crate::rules::Openings;

/// How long a reconcile waits for its turn at a database before it lets others go first.
pub const TURN: Duration = Duration::from_secs(20);

/// State that the controllers of this crate share. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The server of objects without `instanceRef`.
    pub default_instance: DefaultInstance,
    /// What that server opens to every namespace.
    pub openings: Openings,
    /// The connections of this process.
    pub pools: Pools,
    /// Detects changed passwords without keeping them.
    pub fingerprints: Arc<FingerprintKey>,
}

/// The server of objects without `instanceRef`. It may change while the operator runs.
#[derive(Clone, Default)]
pub struct DefaultInstance(Arc<parking_lot::RwLock<Option<ConnectionConfig>>>);

impl DefaultInstance {
    /// This server, or none.
    pub fn new(target: Option<ConnectionConfig>) -> Self {
        Self(Arc::new(parking_lot::RwLock::new(target)))
    }

    /// The current server.
    pub fn get(&self) -> Option<ConnectionConfig> {
        self.0.read().clone()
    }

    /// Replaces it; running reconciles keep the one that they have.
    pub fn set(&self, target: Option<ConnectionConfig>) {
        *self.0.write() = target;
    }
}
