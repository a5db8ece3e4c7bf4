//! A controller's queue: the objects that wait for a pass, and the requeue timers.

mod line;

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::line::FairQueue;
pub(super) use self::line::{Lane, Limits};
use crate::telemetry::metrics::{ControllerMetrics, Queued};
use crate::watch::dependencies::Key;

/// How long running passes may take after shutdown. They are few and short, unless a server does not answer; and until
/// they end, the Lease is held and nobody reconciles. A pass may be stopped anywhere: it may be killed anywhere, too. With
/// [`SETTLE`] and the release of the Lease, a takeover takes less than two seconds.
const DRAIN: Duration = Duration::from_millis(500);
/// How long stopped passes may take to cancel their SQL statements after that.
pub(super) const SETTLE: Duration = Duration::from_millis(500);

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
        self.0
            .state
            .lock()
            .line
            .join(key, lane, || self.0.metrics.queued());
        self.0.joined.notify_one();
    }

    /// Drops the timer of an object that is gone. If the object waits, it stays in the queue: its pass finds nothing to
    /// do, and an object of the same name that was created meanwhile keeps its turn.
    pub(super) fn forget(&self, key: &Key) {
        self.0.state.lock().timers.clear(key);
    }

    /// Runs passes until shutdown, and until the running ones have ended or [`DRAIN`] has passed; then it drops them. A
    /// pass returns when its object is requeued; an earlier event enqueues it earlier.
    pub(super) async fn serve<F>(&self, shutdown: CancellationToken, pass: impl Fn(Key, Queued) -> F)
    where
        F: Future<Output = Option<Duration>>,
    {
        let mut running = FuturesUnordered::new();
        let mut stopping = shutdown.is_cancelled();
        let mut drained = pin!(sleep(DRAIN));
        loop {
            while !stopping && let Some((key, queued)) = self.take() {
                let pass = pass(key.clone(), queued);
                running.push(async move { (key, pass.await) });
            }
            if stopping && running.is_empty() {
                return;
            }
            let next = self.0.state.lock().timers.next();
            tokio::select! {
                biased;
                () = shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    drained.as_mut().reset(Instant::now() + DRAIN);
                }
                () = &mut drained, if stopping => {
                    info!(passes = running.len(), "these passes are stopped; the next leader begins them again");
                    return;
                }
                () = sleep_until(next.unwrap_or_else(Instant::now)), if !stopping && next.is_some() => self.ring(),
                Some((key, requeue_after)) = running.next(), if !running.is_empty() => self.finish(&key, requeue_after),
                () = self.0.joined.notified(), if !stopping => {}
            }
        }
    }

    fn take(&self) -> Option<(Key, Queued)> {
        let mut state = self.0.state.lock();
        let taken = state.line.take()?;
        state.timers.clear(&taken.0);
        Some(taken)
    }

    fn finish(&self, key: &Key, requeue_after: Option<Duration>) {
        let lane = (self.0.lane)(key);
        let mut state = self.0.state.lock();
        state.line.finish(key, || lane);
        if let Some(delay) = requeue_after {
            state.timers.set(key, delay);
        }
    }

    /// Enqueues the objects whose requeue time has come.
    fn ring(&self) {
        let due = self.0.state.lock().timers.due(Instant::now());
        for key in due {
            self.wake(key);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;

    /// The object is made again between the check whether it is gone and this: its event has enqueued it already.
    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_forgotten_keeps_its_turn_and_loses_its_timer() {
        let metrics = Metrics::new("1").controller("toy");
        let queue = Queue::new(Limits::of(1), Arc::new(|_| None), metrics);
        let key = |name: &str| Key {
            namespace: "shop".into(),
            name: name.into(),
        };
        queue.wake(key("again"));
        queue
            .0
            .state
            .lock()
            .timers
            .set(&key("gone"), Duration::from_secs(1));
        for name in ["again", "gone"] {
            queue.forget(&key(name));
        }
        let (served, shutdown) = (Mutex::new(Vec::new()), CancellationToken::new());
        let pass = async |key: Key, _| {
            served.lock().push(key.name);
            None
        };
        let serving = queue.serve(shutdown.clone(), pass);
        assert!(
            tokio::time::timeout(Duration::from_mins(1), serving)
                .await
                .is_err()
        );
        assert_eq!(*served.lock(), ["again"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_hangs_delays_the_end_for_a_moment_only() {
        let metrics = Metrics::new("1").controller("toy");
        let queue = Queue::new(Limits::of(4), Arc::new(|_| None), metrics);
        let shutdown = CancellationToken::new();
        queue.wake(Key {
            namespace: "shop".into(),
            name: "hangs".into(),
        });
        let serving = queue.serve(shutdown.clone(), |_, _| std::future::pending());
        let mut serving = pin!(serving);
        let soon = Duration::from_secs(10);
        assert!(tokio::time::timeout(soon, &mut serving).await.is_err());
        let cancelled = Instant::now();
        shutdown.cancel();
        serving.await;
        assert_eq!(cancelled.elapsed(), DRAIN);
    }
}
