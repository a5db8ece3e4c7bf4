//! Servers that are reused between runs: resetting one takes a fraction of the time of starting another.

use std::sync::{Arc, Mutex};

use stanchion_testkit::postgres::Version;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::bed::Bed;

/// Each run has its own server and project: more at a time would only wait for each other.
static TURNS: Semaphore = Semaphore::const_new(4);

static FREE: Mutex<Vec<Arc<Bed>>> = Mutex::new(Vec::new());

/// A reset server for one run; the next run may use it when this is dropped.
pub(super) struct Lent {
    bed: Arc<Bed>,
    _turn: SemaphorePermit<'static>,
}

impl Lent {
    pub(super) fn bed(&self) -> Arc<Bed> {
        Arc::clone(&self.bed)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        FREE.lock().unwrap().push(self.bed());
    }
}

/// A server of this version, with an empty database `shop`.
pub(super) async fn lend(version: Version) -> Lent {
    let turn = TURNS.acquire().await.unwrap();
    let free = {
        let mut free = FREE.lock().unwrap();
        let found = free.iter().position(|bed| bed.server.version() == version);
        found.map(|found| free.swap_remove(found))
    };
    let bed = match free {
        Some(bed) => {
            bed.empty().await;
            bed
        }
        None => Arc::new(Bed::new(version).await),
    };
    Lent { bed, _turn: turn }
}
