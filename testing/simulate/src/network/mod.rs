//! Everything between a replica and the API server: it delays, loses, cuts and refuses, and it keeps the record.
//!
//! [`Wire`] is the service at the bottom of a replica's client, in the place of a connection. Above it is the client as
//! it is in production, with its deadlines, its retries and its fence.

pub mod bucket;
mod latency;
mod record;
mod request;
pub mod sql;
mod stream;
mod wire;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stanchion_sandbox::{Sandbox, User};
use tokio::sync::Notify;

use self::latency::Latency;
pub use self::record::{Lease, Record, Witness};
pub use self::wire::Wire;
use crate::disturbance::{Effect, Which};

/// The network of one run. Clones are the same network.
#[derive(Clone)]
pub struct Network(Arc<Shared>);

struct Shared {
    latency: Latency,
    record: Record,
    armed: Mutex<Vec<Armed>>,
    state: Mutex<State>,
    /// Wakes in the order of waiting; a watch channel would wake in a random order.
    news: Notify,
}

/// What holds for all requests and watches.
#[derive(Clone, Debug, Default)]
struct State {
    /// The API server is away.
    away: bool,
    /// Replicas that neither reach it nor hear from it.
    cut_off: BTreeSet<usize>,
    /// How often all watches were cut.
    cuts: usize,
}

/// A disturbance that waits for its request.
struct Armed {
    which: Which,
    skip: usize,
    effect: Effect,
}

impl Network {
    /// A network whose delays follow from a seed.
    pub fn new(seed: u64, record: Record) -> Self {
        Self(Arc::new(Shared {
            latency: Latency::new(seed),
            record,
            armed: Mutex::default(),
            state: Mutex::default(),
            news: Notify::new(),
        }))
    }

    /// A replica's connection.
    pub fn wire(&self, replica: usize, sandbox: &Sandbox) -> Wire {
        Wire::new(self.clone(), replica, sandbox.service_for(User::admin()))
    }

    /// What was seen.
    pub fn record(&self) -> &Record {
        &self.0.record
    }

    /// The next request of a sort, after some others of it, is disturbed.
    pub fn arm(&self, which: Which, skip: usize, effect: Effect) {
        self.armed().push(Armed { which, skip, effect });
    }

    /// The API server goes away, or comes back.
    pub fn away(&self, away: bool) {
        self.modify(|state| {
            state.away = away;
            state.cuts += usize::from(away);
        });
    }

    /// A replica is cut off, or reached again.
    pub fn cut_off(&self, replica: usize, cut_off: bool) {
        self.modify(|state| {
            if cut_off {
                state.cut_off.insert(replica);
            } else {
                state.cut_off.remove(&replica);
            }
        });
    }

    /// Ends all watches.
    pub fn cut_watches(&self) {
        self.modify(|state| state.cuts += 1);
    }

    /// Nothing is wrong any more.
    pub fn heal(&self) {
        self.armed().clear();
        self.modify(|state| {
            state.away = false;
            state.cut_off.clear();
        });
    }

    /// The effect that is due for a request of this sort.
    fn strike(&self, which: Which) -> Option<Effect> {
        let mut armed = self.armed();
        let first = armed.iter().position(|entry| entry.which == which)?;
        let entry = armed.get_mut(first)?;
        if entry.skip > 0 {
            entry.skip -= 1;
            return None;
        }
        Some(armed.remove(first).effect)
    }

    /// Returns when the replica is reached.
    async fn reached(&self, replica: usize) {
        self.until(|state| !state.cut_off.contains(&replica)).await;
    }

    /// Returns when this holds.
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let mut news = pin!(self.0.news.notified());
            news.as_mut().enable();
            if holds(&self.state()) {
                return;
            }
            news.await;
        }
    }

    fn modify(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.news.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn armed(&self) -> MutexGuard<'_, Vec<Armed>> {
        self.0.armed.lock()
    }
}
