//! What is remembered between two passes over a project, so that a rollout does not cost a connection each time a pod
//! becomes ready. Nothing here is needed after a restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stanchion_kernel::watch::references::Key;

use super::observe::{Contact, Initialised};

/// Whoever is still there is looked at more often.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// How the dependencies answered.
#[derive(Clone)]
pub struct Checked {
    /// What they were asked with.
    pub inputs: [u8; 32],
    /// When.
    pub at: Instant,
    /// The database's answer.
    pub postgres: Contact,
    /// The bucket's answer.
    pub s3: Contact,
    /// Whether the database has everything.
    pub database: Option<Initialised>,
}

impl Checked {
    /// Whether this may be believed without asking again.
    pub fn holds(&self, inputs: &[u8; 32], within: Duration) -> bool {
        let fine = self.postgres.answered() && self.s3.answered() && self.database.is_some();
        fine && self.inputs == *inputs && self.at.elapsed() < within
    }
}

/// One answer for each project.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<Key, Checked>>);

impl Memory {
    /// The last answers.
    pub fn checked(&self, key: &Key) -> Option<Checked> {
        self.lock().get(key).cloned()
    }

    /// Remembers answers, and forgets those of projects that nobody has looked at for long: they are gone.
    pub fn check(&self, key: &Key, checked: Checked) {
        let mut all = self.lock();
        all.retain(|_, known| known.at.elapsed() < FORGOTTEN);
        all.insert(key.clone(), checked);
    }

    /// Remembers that the database has everything now.
    pub fn initialised(&self, key: &Key, database: Initialised) {
        if let Some(checked) = self.lock().get_mut(key) {
            checked.database = Some(database);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Checked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
