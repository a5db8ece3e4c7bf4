//! What the controller of this crate needs of its process.

use std::sync::Arc;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::Pools;

use crate::charts::Tenants;

/// What the controller needs. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Tells whether a Secret has changed, without keeping it.
    pub fingerprints: Arc<FingerprintKey>,
    /// What tenants may do.
    pub tenants: Arc<Tenants>,
}
