//! Locks for the writers of one object. A patch reads, changes and commits, and starts again if another writer was
//! faster; without locks a slow writer might never finish beside a busy one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

/// Objects share locks by their hash.
const LOCKS: usize = 64;
/// A webhook may write while its caller holds the lock, so waiting has a timeout.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct WriteLocks([Mutex<()>; LOCKS]);

impl Default for WriteLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl WriteLocks {
    /// Waits for the lock of an object. Dropping the value releases it.
    pub(crate) async fn take(&self, storage: &str, key: &str) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        (storage, key).hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % LOCKS as u64).ok()?;
        let turn = self.0.get(index)?.lock();
        tokio::time::timeout(LOCK_TIMEOUT, turn).await.ok()
    }
}
