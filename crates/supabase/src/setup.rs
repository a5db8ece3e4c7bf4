//! State that the controller shares with its process.

use std::sync::Arc;

use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::Pools;

/// State that the controller needs. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Seals ownership marks, which are stored in a server and read again.
    pub fingerprints: Arc<FingerprintKey>,
    /// The allowed prefixes of images; empty means any.
    pub allowed_images: Vec<String>,
}
