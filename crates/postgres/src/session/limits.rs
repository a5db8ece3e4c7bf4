//! Limits for the answers of a server.
//!
//! A server that an object names may be hostile. Its data is measured on arrival, message by message, and refused
//! before it is kept: one row of two gigabytes by its header, a million rows at the limit, a flood of notices like
//! rows. The measure is an estimate of the memory that an answer needs here, not its bytes: a row of seven bytes needs
//! a hundred.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Limits for the answers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, and therefore of one row.
    pub message: usize,
    /// Estimated memory of the answer to one request.
    pub answer: usize,
    /// Rows in the answer to one request.
    pub rows: usize,
}

impl Limits {
    /// For an operator, which shares its memory between many servers.
    pub const SHARED: Self = Self {
        message: 4 * MIB,
        answer: 24 * MIB,
        rows: 200_000,
    };

    /// For a command of a person, which uses one server and ends.
    pub const ALONE: Self = Self {
        message: 256 * MIB,
        answer: 2048 * MIB,
        rows: 50_000_000,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::SHARED
    }
}

/// The memory budget of all current answers together; those of one namespace have at most half of it. Clones share it.
///
/// Small answers do not need it, so a flood from one server does not delay queries to others. A larger answer that
/// exceeds the rest of the budget waits for a moment, and is then given up: the query is retried later.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    all: Arc<Semaphore>,
    half: usize,
    /// By namespace, while it has a connection.
    namespaces: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let steps = bytes / STEP;
        Self(Arc::new(Shared {
            all: Arc::new(Semaphore::new(steps)),
            half: steps / 2,
            namespaces: Mutex::default(),
        }))
    }

    /// The share of a connection. A server that the administrator named has no namespace, and is not limited to half.
    pub(super) fn share(&self, namespace: Option<&str>) -> Share {
        let Shared {
            all,
            half,
            namespaces,
        } = &*self.0;
        let own = namespace.map(|namespace| {
            let mut known = namespaces.lock();
            if let Some(own) = known.get(namespace).and_then(Weak::upgrade) {
                return own;
            }
            known.retain(|_, own| own.strong_count() > 0);
            let own = Arc::new(Semaphore::new(*half));
            known.insert(namespace.to_owned(), Arc::downgrade(&own));
            own
        });
        Share {
            all: Arc::clone(all),
            own,
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(64 * MIB)
    }
}

/// The part of a [`Budget`] that one connection may use.
#[derive(Debug, Clone)]
pub(super) struct Share {
    all: Arc<Semaphore>,
    own: Option<Arc<Semaphore>>,
}

impl Share {
    /// Waits for this many steps: of the namespace first, so that a namespace that has used up its half takes nothing
    /// from the rest.
    pub(super) async fn take(self, steps: u32) -> Result<Portion, AcquireError> {
        let own = match self.own {
            Some(own) => Some(own.acquire_many_owned(steps).await?),
            None => None,
        };
        let all = self.all.acquire_many_owned(steps).await?;
        Ok(Portion { own, all })
    }
}

/// The part of a [`Budget`] that an answer has taken.
#[derive(Debug)]
pub(super) struct Portion {
    own: Option<OwnedSemaphorePermit>,
    all: OwnedSemaphorePermit,
}

impl Portion {
    pub(super) fn steps(&self) -> usize {
        self.all.num_permits()
    }

    /// Adds another one of the same share.
    pub(super) fn merge(&mut self, more: Self) {
        self.all.merge(more.all);
        if let (Some(own), Some(more)) = (&mut self.own, more.own) {
            own.merge(more);
        }
    }
}

/// The part of an answer that does not count.
pub(super) const FREE: usize = 256 * KIB;
/// The budget is taken in steps of this size.
pub(super) const STEP: usize = 256 * KIB;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn take(budget: &Budget, namespace: Option<&str>, steps: u32) -> Option<Portion> {
        let share = budget.share(namespace);
        let taken = timeout(Duration::from_millis(10), share.take(steps)).await;
        taken.ok().map(|portion| portion.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_at_most_half() {
        let budget = Budget::new(8 * STEP);
        let first = take(&budget, Some("evil"), 3).await.unwrap();
        assert!(take(&budget, Some("evil"), 2).await.is_none());
        let second = take(&budget, Some("evil"), 1).await.unwrap();
        // Another namespace has its own half, and the administrator's server gets the rest.
        let bank = take(&budget, Some("bank"), 3).await.unwrap();
        assert!(take(&budget, None, 2).await.is_none());
        let default = take(&budget, None, 1).await.unwrap();
        assert_eq!(default.steps(), 1);
        drop(first);
        drop(default);
        assert!(take(&budget, None, 4).await.is_some());
        drop((second, bank));
        assert!(take(&budget, None, 8).await.is_some());
    }

    #[tokio::test]
    async fn a_namespace_without_connections_is_forgotten() {
        let budget = Budget::new(8 * STEP);
        for number in 0..100 {
            drop(budget.share(Some(&format!("n{number}"))));
        }
        assert_eq!(budget.0.namespaces.lock().len(), 1);
    }
}
