//! What the controller of this crate needs of its process.

use stanchion_postgres::Pools;

/// What the controller needs. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
}
