//! One writer per database at a time: first within this process, then against others.
//!
//! Without it, concurrent writers conflict in the catalogs and fail ("tuple concurrently updated"). Within this process
//! a queue orders the tasks, first come first served, before any connection is taken; against other processes an
//! advisory lock in the database does, which PostgreSQL also grants in order.
//!
//! Neither decides whether a change is correct: each transaction checks again what it changes. A task leaves the queue
//! after a second without progress ([`Kind::Contended`]). Every login of the database can take the advisory lock, so a
//! transaction waits for it only for a moment, and then continues without it: holding it does not prevent a password
//! change or the end of a login.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

use crate::batch::Begin;
use crate::connection_config::ConnectionConfig;
use crate::error::{Error, Kind};
use crate::identity::Place;
use crate::session::Session;
use crate::sqlstate::Doing;

/// The number of an advisory lock. Such locks belong to one database each, so the number identifies only the purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdvisoryKey(i64);

impl AdvisoryKey {
    /// The lock for a purpose, the same in every version of this program (FNV-1a).
    pub const fn named(purpose: &str) -> Self {
        let bytes = purpose.as_bytes();
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            hash = (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
            rest = tail;
        }
        Self(hash.cast_signed())
    }
}

/// How long a transaction waits for the advisory lock before it continues without it.
pub(crate) const MOMENT: Duration = Duration::from_millis(500);

/// The lock for changes of roles and privileges, which all writers of this program take.
pub const ROLES: AdvisoryKey = AdvisoryKey::named("stanchion:roles");

/// How long a reconcile waits for its turn at a database before it lets others go first.
pub const TURN: Duration = Duration::from_secs(20);

impl fmt::Display for AdvisoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A task that has held its turn for this long hangs, or is busy for a while: the others do not wait for it.
const HURRY: Duration = Duration::from_secs(5);

struct Queue {
    turn: Arc<AsyncMutex<()>>,
    /// Since when a task holds the turn.
    taken: Mutex<Instant>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            turn: Arc::default(),
            taken: Mutex::new(Instant::now()),
        }
    }
}

/// The queues of this process, one for each database. Clones share them.
#[derive(Clone, Default)]
pub struct Locks {
    queues: Arc<Mutex<HashMap<Place, Weak<Queue>>>>,
}

/// A task's turn, until this is dropped.
#[must_use]
pub struct Turn {
    _guard: OwnedMutexGuard<()>,
    /// Kept while a task holds the turn.
    _queue: Arc<Queue>,
}

impl Locks {
    /// Waits for our turn at a database. It waits neither longer than `wait` nor for a task that has held its turn for
    /// longer than [`HURRY`]: such a task waits for a lock or for a server that does not answer, and all others would
    /// wait with it.
    pub async fn acquire(
        &self,
        place: &Place,
        target: &ConnectionConfig,
        wait: Duration,
    ) -> Result<Turn, Error> {
        let queue = self.queue(place);
        let begun = Instant::now();
        let mut turn = std::pin::pin!(Arc::clone(&queue.turn).lock_owned());
        loop {
            let taken = || *queue.taken.lock();
            let until = (taken() + HURRY).min(begun + wait);
            if let Ok(guard) = timeout_at(until, &mut turn).await {
                *queue.taken.lock() = Instant::now();
                return Ok(Turn {
                    _guard: guard,
                    _queue: queue,
                });
            }
            let now = Instant::now();
            if now >= begun + wait || taken() + HURRY <= now {
                // Without a changing number: a condition contains this text.
                let cause = "others are busy with it";
                return Err(Error::new(Kind::Contended, Doing::Locking, target, cause));
            }
        }
    }

    fn queue(&self, place: &Place) -> Arc<Queue> {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get(place).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Queue::default());
        queues.insert(place.clone(), Arc::downgrade(&queue));
        queue
    }
}

/// An advisory lock that is held across transactions. Release it with [`SessionLock::release`]; if it is dropped
/// otherwise, its session is not used again, and the lock ends with the connection.
#[must_use]
pub struct SessionLock<'s> {
    session: &'s mut Session,
    key: AdvisoryKey,
    held: bool,
}

impl Session {
    /// Takes an advisory lock for work of more than one transaction.
    pub async fn lock(&mut self, key: AdvisoryKey, wait: Duration) -> Result<SessionLock<'_>, Error> {
        let prologue = Begin::session_lock(key, wait);
        let answer = self.send(&[&prologue.text()], prologue.len()).await;
        if let Some(lost) = answer.lost {
            let error = self.not_begun(&prologue, answer.affected.len(), lost);
            self.roll_back().await;
            return Err(error);
        }
        Ok(SessionLock {
            session: self,
            key,
            held: true,
        })
    }
}

impl SessionLock<'_> {
    /// The session that holds the lock, for the work.
    pub fn session(&mut self) -> &mut Session {
        self.session
    }

    /// Releases the lock.
    pub async fn release(mut self) {
        let unlock = format!("SELECT pg_catalog.pg_advisory_unlock({})", self.key);
        self.held = self.session.send(&[&unlock], 1).await.lost.is_some();
    }
}

impl Drop for SessionLock<'_> {
    fn drop(&mut self) {
        if self.held {
            self.session.condemn();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> (Place, ConnectionConfig) {
        let target = ConnectionConfig::new("h", 1, name, "u").unwrap();
        let place = Place {
            peer: "192.0.2.1:1".into(),
            identity: crate::identity::Identity::unknown(&target),
        };
        (place, target)
    }

    /// An attacker's server may report our identity: it has another address.
    #[tokio::test(start_paused = true)]
    async fn a_forged_identity_takes_nobodys_turn() {
        let locks = Locks::default();
        let (ours, target) = place("a");
        let forged = Place {
            peer: "198.51.100.1:1".into(),
            ..ours.clone()
        };
        let _theirs = locks.acquire(&forged, &target, Duration::ZERO).await.unwrap();
        let _ours = locks.acquire(&ours, &target, Duration::ZERO).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_stands_behind_one_who_is_stuck() {
        let locks = Locks::default();
        let (database, target) = place("a");
        let _stuck = locks.acquire(&database, &target, Duration::ZERO).await.unwrap();
        let begun = Instant::now();
        let wait = Duration::from_mins(1);
        for _ in 0..10 {
            let error = locks.acquire(&database, &target, wait).await.err().unwrap();
            assert_eq!(error.kind(), Kind::Contended);
        }
        assert_eq!(
            begun.elapsed(),
            HURRY,
            "the first waits for a moment, the others do not"
        );
    }

    #[test]
    fn keys_never_change() {
        assert_eq!(
            AdvisoryKey::named("stanchion:roles").to_string(),
            ROLES.to_string()
        );
        assert_eq!(
            AdvisoryKey::named("a"),
            AdvisoryKey(0xaf63_dc4c_8601_ec8c_u64.cast_signed())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn first_come_first_served() {
        let locks = Locks::default();
        let (database, target) = place("a");
        let wait = Duration::from_mins(1);
        let first = locks.acquire(&database, &target, wait).await.unwrap();
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..10 {
            let (locks, database, target, sender) =
                (locks.clone(), database.clone(), target.clone(), sender.clone());
            tokio::spawn(async move {
                let _turn = locks.acquire(&database, &target, wait).await.unwrap();
                sender.send(number).unwrap();
            });
            // Each is in the queue before the next comes.
            tokio::task::yield_now().await;
        }
        drop((first, sender));
        let mut served = Vec::new();
        while let Some(number) = order.recv().await {
            served.push(number);
        }
        assert_eq!(served, (0..10).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_an_end_and_other_databases_do_not_wait() {
        let locks = Locks::default();
        let ((a, target), (b, _)) = (place("a"), place("b"));
        let turn = locks.acquire(&a, &target, Duration::ZERO).await.unwrap();
        let error = locks
            .acquire(&a, &target, Duration::from_secs(1))
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind(), Kind::Contended);
        drop(locks.acquire(&b, &target, Duration::ZERO).await.unwrap());
        drop(turn);
        drop(locks.acquire(&a, &target, Duration::ZERO).await.unwrap());
    }

    #[tokio::test]
    async fn queues_without_anybody_are_forgotten() {
        let locks = Locks::default();
        for number in 0..100 {
            let (database, target) = place(&format!("db{number}"));
            drop(
                locks
                    .acquire(&database, &target, Duration::from_secs(1))
                    .await
                    .unwrap(),
            );
        }
        assert!(locks.queues.lock().len() <= 1);
    }
}
