//! What the controllers of this crate share.

use std::sync::Arc;
use std::time::Duration;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::{Pools, Target};

use crate::rules::Openings;

/// How long a pass waits for its turn at a database before it lets others go first.
pub const TURN: Duration = Duration::from_secs(20);

/// What the controllers of this crate share. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The server of objects without `instanceRef`.
    pub default_instance: DefaultInstance,
    /// What that server opens to every namespace.
    pub openings: Openings,
    /// The connections of this process.
    pub pools: Pools,
    /// Tells whether a password has changed, without keeping it.
    pub fingerprints: Arc<FingerprintKey>,
}

/// The server that is used when an object names none. It may be exchanged while the operator runs.
#[derive(Clone, Default)]
pub struct DefaultInstance(Arc<std::sync::RwLock<Option<Target>>>);

impl DefaultInstance {
    /// This server, or none.
    pub fn new(target: Option<Target>) -> Self {
        Self(Arc::new(std::sync::RwLock::new(target)))
    }

    /// The server as it is set now.
    pub fn get(&self) -> Option<Target> {
        self.0
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Exchanges it; passes that run keep the one they have.
    pub fn set(&self, target: Option<Target>) {
        *self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = target;
    }
}
