//! State that the controller shares with its process.

use std::sync::Arc;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::Pools;

use crate::charts::Tenants;

/// State that the controller needs. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Detects changed Secrets without keeping them.
    pub fingerprints: Arc<FingerprintKey>,
    /// The permissions of tenants.
    pub tenants: Arc<Tenants>,
}
