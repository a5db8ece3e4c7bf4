//! What the controller of this crate needs of its process.

use std::sync::Arc;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::Pools;

/// What the controller needs. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Seals what is written into a server and read again: the marks of ownership.
    pub fingerprints: Arc<FingerprintKey>,
    /// What the images of components may begin with; empty for any.
    pub allowed_images: Vec<String>,
}
