//! A circuit breaker: a server that does not answer is left alone for a while, and only one task at a time tries it.
//!
//! | state | who may try |
//! |---|---|
//! | proven: a task connected, and none has failed since | all tasks at once |
//! | unproven: no task has connected yet | one task; the others wait for it, for a moment |
//! | open: the last attempt failed | none, until a pause ends; it doubles with each failure |
//! | half open: the pause has ended | one task, as when unproven |
//!
//! So forty objects on a dead server cost one attempt at a time, and not forty workers.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::connection_config::ConnectionConfig;
use crate::error::{Error, Kind};
use crate::sqlstate::Doing;

/// How long a task waits for the attempt of another one.
pub(super) const HURRY: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a failure counts after the pause that followed it.
const REMEMBERED: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    proven: bool,
    failures: u32,
    /// No attempt before this time.
    until: Option<Instant>,
    last: Option<Error>,
    /// When the current attempt began, if only one is allowed.
    attempt: Option<Instant>,
}

/// The permission to try. If it is dropped without a result (the task was cancelled), it changes nothing.
#[must_use]
pub(super) struct Attempt<'b> {
    breaker: &'b Breaker,
    alone: bool,
}

impl Breaker {
    /// A proven one: without a failure it lets all tasks try at once.
    pub(super) fn trusting() -> Self {
        let state = State {
            proven: true,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            ended: Notify::new(),
        }
    }

    /// Waits until this task may try, or returns why it should not.
    pub(super) async fn enter(&self, target: &ConnectionConfig) -> Result<Attempt<'_>, Error> {
        loop {
            // Before the check, so that an end in between is not missed.
            let ended = self.ended.notified();
            let since = match self.decide() {
                Decision::Try(alone) => return Ok(Attempt { breaker: self, alone }),
                Decision::Open(error) => return Err(error),
                Decision::Wait(since) => since,
            };
            if timeout_at(since + HURRY, ended).await.is_err() {
                let last = self.lock().last.clone();
                let cause = "the server has not answered yet; another attempt is under way";
                return Err(last.map_or_else(
                    || Error::new(Kind::Exhausted, Doing::Connecting, target, cause),
                    Error::not_tried,
                ));
            }
        }
    }

    fn decide(&self) -> Decision {
        let mut state = self.lock();
        let now = Instant::now();
        if let (Some(until), Some(last)) = (state.until, &state.last)
            && now < until
        {
            return Decision::Open(last.clone().not_tried());
        }
        if state.proven && state.failures == 0 {
            return Decision::Try(false);
        }
        if let Some(since) = state.attempt {
            Decision::Wait(since)
        } else {
            state.attempt = Some(now);
            Decision::Try(true)
        }
    }

    /// Whether the last attempt failed.
    pub(super) fn is_open(&self) -> bool {
        self.lock().failures > 0
    }

    /// Whether the last attempt failed a short time ago.
    pub(super) fn failed_recently(&self) -> bool {
        let until = self.lock().until;
        until.is_some_and(|until| Instant::now() < until + REMEMBERED)
    }

    /// The failure that it is open for.
    pub(super) fn open_for(&self) -> Option<Error> {
        let state = self.lock();
        state.last.clone().filter(|_| state.failures > 0)
    }

    /// An open session has shown that the server does not answer any more. Returns whether that is news.
    pub(super) fn trip(&self, error: &Error) -> bool {
        self.lock().fail(error)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

enum Decision {
    Try(bool),
    Wait(Instant),
    Open(Error),
}

impl State {
    /// Opens the breaker. Says whether the server is lost by that: it answered until now. Attempts that ran at the same time
    /// are one failure: a server that restarts breaks all its connections at once.
    fn fail(&mut self, error: &Error) -> bool {
        if self.until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        let lost = self.proven && self.failures == 0;
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.failures.min(8))
            .min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(Instant::now() + pause);
        self.last = Some(error.clone());
        lost
    }
}

impl Attempt<'_> {
    /// The server answered.
    pub(super) fn succeeded(self) {
        let mut state = self.breaker.lock();
        state.proven = true;
        state.failures = 0;
        (state.until, state.last) = (None, None);
    }

    /// The server did not answer. Returns whether the server is lost by that.
    pub(super) fn failed(self, error: &Error) -> bool {
        self.breaker.lock().fail(error)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.alone {
            self.breaker.lock().attempt = None;
        }
        self.breaker.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> ConnectionConfig {
        ConnectionConfig::new("h", 1, "d", "u").unwrap()
    }

    fn dead() -> Error {
        Error::new(Kind::Refused, Doing::Connecting, &target(), "connection refused")
    }

    #[tokio::test(start_paused = true)]
    async fn one_tries_and_the_others_hear_of_it() {
        let breaker = Breaker::default();
        let first = breaker.enter(&target()).await.unwrap();
        let target = target();
        let (second, ()) = tokio::join!(breaker.enter(&target), async {
            tokio::time::sleep(HURRY / 2).await;
            first.succeeded();
        });
        second.unwrap().succeeded();
        let (one, two) = (breaker.enter(&target).await, breaker.enter(&target).await);
        assert!(one.is_ok() && two.is_ok(), "a proven server is open to all");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long_for_somebody_elses_attempt() {
        let breaker = Breaker::default();
        let _first = breaker.enter(&target()).await.unwrap();
        let begun = Instant::now();
        assert_eq!(
            breaker.enter(&target()).await.err().unwrap().kind(),
            Kind::Exhausted
        );
        assert_eq!(begun.elapsed(), HURRY);
        assert_eq!(
            breaker.enter(&target()).await.err().unwrap().kind(),
            Kind::Exhausted
        );
        assert_eq!(begun.elapsed(), HURRY, "the second does not wait at all");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_server_is_left_alone_for_longer_and_longer() {
        let breaker = Breaker::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let lost = breaker.enter(&target()).await.unwrap().failed(&dead());
            assert!(!lost, "nobody was ever connected to it");
            assert!(breaker.is_open());
            let begun = Instant::now();
            let error = breaker.enter(&target()).await.err().unwrap();
            assert_eq!((error.kind(), begun.elapsed()), (Kind::Refused, Duration::ZERO));
            assert!(error.was_not_tried());
            while breaker.enter(&target()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            pauses.push(begun.elapsed());
        }
        assert!(
            pauses.is_sorted() && pauses[7] <= LONGEST_PAUSE + Duration::from_millis(50),
            "{pauses:?}"
        );
        breaker.enter(&target()).await.unwrap().succeeded();
        assert!(!breaker.is_open() && breaker.enter(&target()).await.is_ok());
        let lost = [breaker.trip(&dead()), breaker.trip(&dead())];
        assert_eq!(lost, [true, false], "a server is lost once");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_at_the_same_time_are_one() {
        let breaker = Breaker::trusting();
        let target = target();
        let mut attempts = Vec::new();
        for _ in 0..4 {
            attempts.push(breaker.enter(&target).await.unwrap());
        }
        let lost: Vec<bool> = attempts.into_iter().map(|one| one.failed(&dead())).collect();
        assert_eq!(lost, [true, false, false, false]);
        tokio::time::sleep(FIRST_PAUSE).await;
        assert!(breaker.enter(&target).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_cut_off_holds_nobody_up() {
        let breaker = Breaker::default();
        drop(breaker.enter(&target()).await.unwrap());
        breaker.enter(&target()).await.unwrap().succeeded();
    }
}
