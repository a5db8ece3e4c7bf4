//! A controller's queue: the objects that wait for a pass, and the requeue timers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::fair_queue::{FairQueue, Lane, Limits};
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
