//! A controller's queue: the objects that wait for a pass, and the requeue timers.
//!
//! Namespaces take turns, and within a namespace so do lanes. One namespace has at most half of the workers, however
//! many objects it has and however long their passes take; one lane has at most half of these. So a tenant with sixty
//! objects on a server that never answers does not delay other tenants, and lanes protect the tenant's other objects.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::telemetry::metrics::{ControllerMetrics, Queued};
use crate::watch::dependencies::Key;

/// Returns the lane of an object.
pub(super) type LaneOf = Arc<dyn Fn(&Key) -> Lane + Send + Sync>;

/// A handle of the queue. Clones share the queue.
#[derive(Clone)]
pub(super) struct Queue(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// An object was enqueued.
    joined: Notify,
    lane: LaneOf,
    metrics: ControllerMetrics,
}

struct State {
    line: FairQueue<Queued>,
    timers: Timers,
}

impl Queue {
    pub(super) fn new(limits: Limits, lane: LaneOf, metrics: ControllerMetrics) -> Self {
        let state = State {
            line: FairQueue::new(limits),
            timers: Timers::default(),
        };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            joined: Notify::new(),
            lane,
            metrics,
        }))
    }

    /// Enqueues the object.
    pub(super) fn wake(&self, key: Key) {
        let lane = (self.0.lane)(&key);
        self.lock().line.join(key, lane, || self.0.metrics.queued());
        self.0.joined.notify_one();
    }

    /// Drops an object that is gone.
    pub(super) fn forget(&self, key: &Key) {
        let mut state = self.lock();
        state.timers.clear(key);
        drop(state.line.leave(key));
    }

    /// Runs passes until shutdown, and until the running ones have ended. A pass returns when its object is requeued;
    /// an earlier event enqueues it earlier.
    pub(super) async fn serve<F>(&self, shutdown: CancellationToken, pass: impl Fn(Key, Queued) -> F)
    where
        F: Future<Output = Option<Duration>>,
    {
        let mut running = FuturesUnordered::new();
        let mut stopping = shutdown.is_cancelled();
        loop {
            while !stopping && let Some((key, queued)) = self.take() {
                let pass = pass(key.clone(), queued);
                running.push(async move { (key, pass.await) });
            }
            if stopping && running.is_empty() {
                return;
            }
            let next = self.lock().timers.next();
            tokio::select! {
                biased;
                () = shutdown.cancelled(), if !stopping => stopping = true,
                () = sleep_until(next.unwrap_or_else(Instant::now)), if !stopping && next.is_some() => self.ring(),
                Some((key, requeue_after)) = running.next(), if !running.is_empty() => self.finish(&key, requeue_after),
                () = self.0.joined.notified(), if !stopping => {}
            }
        }
    }

    fn take(&self) -> Option<(Key, Queued)> {
        let mut state = self.lock();
        let taken = state.line.take()?;
        state.timers.clear(&taken.0);
        Some(taken)
    }

    fn finish(&self, key: &Key, requeue_after: Option<Duration>) {
        let lane = (self.0.lane)(key);
        let mut state = self.lock();
        state.line.finish(key, || lane);
        if let Some(delay) = requeue_after {
            state.timers.set(key, delay);
        }
    }

    /// Enqueues the objects whose requeue time has come.
    fn ring(&self) {
        let due = self.lock().timers.due(Instant::now());
        for key in due {
            self.wake(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

/// The requeue times of objects.
#[derive(Default)]
struct Timers {
    by_time: BTreeMap<(Instant, u64), Key>,
    by_key: HashMap<Key, (Instant, u64)>,
    count: u64,
}

impl Timers {
    fn set(&mut self, key: &Key, delay: Duration) {
        self.clear(key);
        let Some(at) = Instant::now().checked_add(delay) else {
            return;
        };
        self.count += 1;
        self.by_time.insert((at, self.count), key.clone());
        self.by_key.insert(key.clone(), (at, self.count));
    }

    fn clear(&mut self, key: &Key) {
        if let Some(timer) = self.by_key.remove(key) {
            self.by_time.remove(&timer);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.by_time.keys().next().map(|(at, _)| *at)
    }

    fn due(&mut self, now: Instant) -> Vec<Key> {
        let later = self.by_time.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut self.by_time, later);
        let due: Vec<Key> = due.into_values().collect();
        for key in &due {
            self.by_key.remove(key);
        }
        due
    }
}

/// Maximum numbers of concurrent passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// In total.
    pub(super) places: usize,
    /// For one namespace.
    pub(super) of_namespace: usize,
    /// For one lane of a namespace.
    pub(super) of_lane: usize,
}

impl Limits {
    /// The limits for a total number.
    pub(super) fn of(places: u16) -> Self {
        let half = |whole: usize| whole.div_ceil(2);
        let places = usize::from(places).max(1);
        Self {
            places,
            of_namespace: half(places),
            of_lane: half(half(places)),
        }
    }
}

/// The group within a namespace that an object shares a limit with; `None` for no group.
pub(super) type Lane = Option<String>;

/// The waiting and the running objects. `W` is a value for each waiting object.
struct FairQueue<W> {
    limits: Limits,
    waiting: HashMap<Key, Waiting<W>>,
    running: HashMap<Key, Turn>,
    namespaces: HashMap<String, Namespace>,
    /// The namespaces with waiting objects, the next one first.
    order: VecDeque<String>,
}

struct Waiting<W> {
    /// The lane that it waits in. It may have an outdated entry in another one.
    lane: Lane,
    value: W,
}

struct Turn {
    lane: Lane,
    /// It was enqueued again while it ran.
    again: bool,
}

#[derive(Default)]
struct Namespace {
    running: usize,
    lanes: HashMap<Lane, Members>,
    /// The lanes with waiting objects, the next one first.
    order: VecDeque<Lane>,
}

#[derive(Default)]
struct Members {
    running: usize,
    /// In the order of arrival. A key that `FairQueue::waiting` does not have in this lane has left it.
    waiting: VecDeque<Key>,
}

impl<W> FairQueue<W> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiting: HashMap::new(),
            running: HashMap::new(),
            namespaces: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Enqueues an object. A waiting object stays in the queue once; a running one is enqueued again after its pass.
    ///
    /// A waiting object changes its lane: after a start, children enqueue their owners before these are listed, when their
    /// lanes are not known yet. If they all stayed in one lane, each later event of another object would overtake them.
    pub(super) fn join(&mut self, key: Key, lane: Lane, wait: impl FnOnce() -> W) {
        let turn = self.running.get_mut(&key);
        let is_running = turn.is_some();
        if let Some(turn) = turn {
            turn.again = true;
        }
        match self.waiting.entry(key.clone()) {
            Entry::Occupied(mut waiting) => {
                if std::mem::replace(&mut waiting.get_mut().lane, lane.clone()) == lane {
                    return;
                }
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Waiting {
                    lane: lane.clone(),
                    value: wait(),
                });
            }
        }
        if !is_running {
            self.place(key, lane);
        }
    }

    fn place(&mut self, key: Key, lane: Lane) {
        let name = key.namespace.clone();
        let namespace = self.namespaces.entry(name.clone()).or_default();
        if namespace.order.is_empty() {
            self.order.push_back(name);
        }
        let members = namespace.lanes.entry(lane.clone()).or_default();
        if members.waiting.is_empty() {
            namespace.order.push_back(lane);
        }
        members.waiting.push_back(key);
    }

    /// The next object, if a worker is free for it.
    pub(super) fn take(&mut self) -> Option<(Key, W)> {
        if self.running.len() >= self.limits.places {
            return None;
        }
        for _ in 0..self.order.len() {
            let name = self.order.pop_front()?;
            let Some(namespace) = self.namespaces.get_mut(&name) else {
                continue;
            };
            let taken = namespace.take(self.limits, &mut self.waiting);
            if !namespace.order.is_empty() {
                self.order.push_back(name);
            }
            if let Some((key, lane, wait)) = taken {
                self.running.insert(key.clone(), Turn { lane, again: false });
                return Some((key, wait));
            }
        }
        None
    }

    /// A pass has ended. `lane` is the object's lane if it was enqueued again.
    pub(super) fn finish(&mut self, key: &Key, lane: impl FnOnce() -> Lane) {
        let Some(turn) = self.running.remove(key) else {
            return;
        };
        if let Some(namespace) = self.namespaces.get_mut(&key.namespace) {
            namespace.running = namespace.running.saturating_sub(1);
            if let Some(members) = namespace.lanes.get_mut(&turn.lane) {
                members.running = members.running.saturating_sub(1);
                if members.running == 0 && members.waiting.is_empty() {
                    namespace.lanes.remove(&turn.lane);
                }
            }
        }
        if turn.again
            && let Some(waiting) = self.waiting.get_mut(key)
        {
            waiting.lane = lane();
            let lane = waiting.lane.clone();
            self.place(key.clone(), lane);
        }
        self.tidy(&key.namespace);
    }

    /// Removes an object from the queue.
    pub(super) fn leave(&mut self, key: &Key) -> Option<W> {
        self.waiting.remove(key).map(|waiting| waiting.value)
    }

    fn tidy(&mut self, name: &str) {
        let is_idle = |namespace: &Namespace| {
            namespace.running == 0 && namespace.order.is_empty() && namespace.lanes.is_empty()
        };
        if self.namespaces.get(name).is_some_and(is_idle) {
            self.namespaces.remove(name);
        }
    }
}

impl Namespace {
    fn take<W>(&mut self, limits: Limits, waiting: &mut HashMap<Key, Waiting<W>>) -> Option<(Key, Lane, W)> {
        if self.running >= limits.of_namespace {
            return None;
        }
        for _ in 0..self.order.len() {
            let lane = self.order.pop_front()?;
            let Some(members) = self.lanes.get_mut(&lane) else {
                continue;
            };
            let is_full = lane.is_some() && members.running >= limits.of_lane;
            let taken = if is_full {
                None
            } else {
                members.take(&lane, waiting)
            };
            let (is_empty, is_idle) = (members.waiting.is_empty(), members.running == 0);
            if !is_empty {
                self.order.push_back(lane.clone());
            } else if is_idle && taken.is_none() {
                self.lanes.remove(&lane);
            }
            if let Some((key, wait)) = taken {
                self.running += 1;
                return Some((key, lane, wait));
            }
        }
        None
    }
}

impl Members {
    fn take<W>(&mut self, lane: &Lane, waiting: &mut HashMap<Key, Waiting<W>>) -> Option<(Key, W)> {
        while let Some(key) = self.waiting.pop_front() {
            if let Entry::Occupied(found) = waiting.entry(key)
                && found.get().lane == *lane
            {
                let (key, found) = found.remove_entry();
                self.running += 1;
                return Some((key, found.value));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
