//! The servers of the examples: real servers on free loopback ports, in the sandbox's directory.

mod database;
mod storage;

pub(super) use self::database::{ADMINISTRATOR, Database};
pub(super) use self::storage::{ACCESS_KEY, BUCKET, Storage};

use super::error::SandboxError;
use super::home::Home;

pub(super) struct Servers {
    /// PostgreSQL.
    pub(super) database: Database,
    /// S3.
    pub(super) storage: Storage,
}

impl Servers {
    /// Starts the servers.
    pub(super) async fn start(home: &Home) -> Result<Self, SandboxError> {
        let storage = Storage::start(home).await?;
        let database = Database::start(home).await?;
        Ok(Self { database, storage })
    }

    /// One line for each server.
    pub(super) fn lines(&self) -> Vec<String> {
        let (database, storage) = (&self.database, &self.storage);
        vec![
            format!(
                "PostgreSQL   127.0.0.1:{} (version {})",
                database.port(),
                database.release()
            ),
            format!("S3           {}", storage.endpoint()),
        ]
    }

    /// Stops the servers and waits for their end.
    pub(super) async fn stop(self) {
        self.database.stop().await;
    }
}
