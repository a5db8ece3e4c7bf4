//! Servers that are reused between runs: resetting one takes a fraction of the time of starting another.

use std::sync::{Arc, Mutex};

use stanchion_testkit::postgres::Version;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::database_env::DatabaseEnv;

/// Each run has its own server and project: more at a time would only wait for each other.
static TURNS: Semaphore = Semaphore::const_new(4);

static FREE: Mutex<Vec<Arc<DatabaseEnv>>> = Mutex::new(Vec::new());

/// A reset server for one run; the next run may use it when this is dropped.
pub(super) struct BorrowedServer {
    db_env: Arc<DatabaseEnv>,
    _turn: SemaphorePermit<'static>,
}

impl BorrowedServer {
    pub(super) fn db_env(&self) -> Arc<DatabaseEnv> {
        Arc::clone(&self.db_env)
    }
}

impl Drop for BorrowedServer {
    fn drop(&mut self) {
        FREE.lock().unwrap().push(self.db_env());
    }
}

/// A server of this version, with an empty database `shop`.
pub(super) async fn borrow(version: Version) -> BorrowedServer {
    let turn = TURNS.acquire().await.unwrap();
    let free = {
        let mut free = FREE.lock().unwrap();
        let found = free.iter().position(|db_env| db_env.server.version() == version);
        found.map(|found| free.swap_remove(found))
    };
    let db_env = match free {
        Some(db_env) => {
            db_env.empty().await;
            db_env
        }
        None => Arc::new(DatabaseEnv::new(version).await),
    };
    BorrowedServer { db_env, _turn: turn }
}
