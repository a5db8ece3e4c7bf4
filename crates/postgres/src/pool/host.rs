//! The connections to one server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::pooled::Pooled;
use super::{Counts, PoolSettings};
use crate::error::{Error, Kind};
use crate::identity::Identity;
use crate::observe::StatementObserver;
use crate::session::Session;
use crate::sqlstate::Doing;
use crate::target::{Fingerprint, Target};

/// Who connects to what. Its fingerprint changes with its credentials.
type Login = (String, String);

pub(super) struct Host {
    settings: PoolSettings,
    observer: Arc<dyn StatementObserver>,
    /// A permit for each connection in use. Tokio grants them in the order they are asked for.
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    limit: usize,
    /// Permits that are out and should not be, since the limit has shrunk.
    surplus: usize,
    /// Connections in use and idle ones.
    open: usize,
    /// The longest unused first.
    idle: Vec<Idle>,
    identities: HashMap<Login, (Fingerprint, Identity)>,
    /// A task is there to close the idle ones.
    reaped: bool,
}

pub(super) struct Idle {
    pub(super) session: Session,
    pub(super) fingerprint: Fingerprint,
    pub(super) opened: Instant,
    pub(super) since: Instant,
}

impl Idle {
    fn login(&self) -> Login {
        login(self.session.target())
    }
}

fn login(target: &Target) -> Login {
    (target.user().to_owned(), target.database().to_owned())
}

/// What a task that has a permit does next.
enum Next {
    Use(Box<Idle>),
    /// Close these, then open a new one in their place.
    Open(Vec<Idle>),
}

impl Host {
    pub(super) fn new(settings: PoolSettings, observer: Arc<dyn StatementObserver>) -> Self {
        let limit = settings.max_per_server.max(1);
        let state = State {
            limit,
            surplus: 0,
            open: 0,
            idle: Vec::new(),
            identities: HashMap::new(),
            reaped: false,
        };
        Self {
            settings,
            observer,
            permits: Arc::new(Semaphore::new(limit)),
            waiting: AtomicUsize::new(0),
            state: Mutex::new(state),
        }
    }

    pub(super) async fn get(self: Arc<Self>, target: &Target) -> Result<Pooled, Error> {
        let permit = self.permit(target).await?;
        let fingerprint = target.fingerprint();
        let next = self.next(target, fingerprint);
        let idle = match next {
            Next::Use(idle) => *idle,
            Next::Open(replaced) => {
                // Counts as open from here on, also if this future is dropped on the way.
                let slot = Slot(&self);
                join_all(replaced.into_iter().map(|idle| idle.session.close())).await;
                let session =
                    Session::connect(target, &self.settings.timeouts, self.observer.clone()).await?;
                slot.keep();
                self.remember(target, fingerprint, session.identity());
                let now = Instant::now();
                Idle {
                    session,
                    fingerprint,
                    opened: now,
                    since: now,
                }
            }
        };
        Ok(Pooled::new(self, permit, idle))
    }

    async fn permit(&self, target: &Target) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = Waiting::at(&self.waiting);
        let wait = self.settings.wait;
        let Ok(Ok(permit)) = timeout(wait, self.permits.clone().acquire_owned()).await else {
            let limit = self.lock().limit;
            let cause = format!(
                "all {limit} connections were in use for {} seconds",
                wait.as_secs_f32()
            );
            return Err(Error::new(Kind::Exhausted, Doing::Connecting, target, cause));
        };
        Ok(permit)
    }

    /// Finds one to use, or makes room for a new one.
    fn next(&self, target: &Target, fingerprint: Fingerprint) -> Next {
        let login = login(target);
        let mut state = self.lock();
        // Broken, too old, or with credentials that have changed since.
        let max_age = self.settings.max_age;
        let useless = |idle: &mut Idle| {
            !idle.session.is_reusable()
                || idle.opened.elapsed() > max_age
                || (idle.fingerprint != fingerprint && idle.login() == login)
        };
        let mut replaced: Vec<_> = state.idle.extract_if(.., useless).collect();
        state.open -= replaced.len();
        // The one used last is the warmest.
        if let Some(index) = state
            .idle
            .iter()
            .rposition(|idle| idle.fingerprint == fingerprint)
        {
            return Next::Use(Box::new(state.idle.remove(index)));
        }
        // Those in use are fewer than the limit, for we have a permit; so if all are open, some are idle.
        while state.open >= state.limit && !state.idle.is_empty() {
            replaced.push(state.idle.remove(0));
            state.open -= 1;
        }
        state.open += 1;
        Next::Open(replaced)
    }

    /// Takes a connection back, before its permit.
    pub(super) fn put(self: &Arc<Self>, idle: Idle) {
        let mut state = self.lock();
        // The limit may have shrunk in the meantime.
        if !idle.session.is_reusable() || state.open > state.limit {
            state.open -= 1;
            return;
        }
        state.idle.push(idle);
        if !state.reaped {
            state.reaped = true;
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Removes those that were unused for too long; says when to look again, if there are others.
    fn expired(&self) -> (Vec<Idle>, Option<Instant>) {
        let idle = self.settings.idle;
        let mut state = self.lock();
        let expired: Vec<_> = state
            .idle
            .extract_if(.., |one| one.since.elapsed() >= idle)
            .collect();
        state.open -= expired.len();
        let next = state.idle.first().map(|oldest| oldest.since + idle);
        state.reaped = next.is_some();
        (expired, next)
    }

    pub(super) async fn close_idle(&self) {
        let idle = {
            let mut state = self.lock();
            state.open -= state.idle.len();
            std::mem::take(&mut state.idle)
        };
        join_all(idle.into_iter().map(|idle| idle.session.close())).await;
    }

    pub(super) fn set_limit(&self, limit: usize) {
        let limit = limit.max(1);
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.limit, limit);
        if limit > before {
            let forgiven = state.surplus.min(limit - before);
            state.surplus -= forgiven;
            self.permits.add_permits(limit - before - forgiven);
        } else {
            state.surplus += before - limit - self.permits.forget_permits(before - limit);
        }
    }

    /// Takes a permit back; it goes out of circulation if the limit has shrunk.
    pub(super) fn release(&self, permit: OwnedSemaphorePermit) {
        let mut state = self.lock();
        if state.surplus > 0 {
            state.surplus -= 1;
            permit.forget();
        }
    }

    pub(super) fn known_identity(&self, target: &Target) -> Option<Identity> {
        let state = self.lock();
        let (fingerprint, identity) = state.identities.get(&login(target))?;
        (*fingerprint == target.fingerprint()).then(|| identity.clone())
    }

    fn remember(&self, target: &Target, fingerprint: Fingerprint, identity: &Identity) {
        self.lock()
            .identities
            .insert(login(target), (fingerprint, identity.clone()));
    }

    pub(super) fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            open: state.open,
            idle: state.idle.len(),
            waiting: self.waiting.load(Ordering::Relaxed),
            limit: state.limit,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes idle connections until there are none; the next one that becomes idle starts it anew.
async fn reap(host: Weak<Host>) {
    loop {
        let Some(next) = host.upgrade().and_then(|host| host.expired().1) else {
            return;
        };
        sleep_until(next).await;
    }
}

/// Room for a connection that is being opened; given back unless it is kept.
struct Slot<'h>(&'h Host);

impl Slot<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

/// Counts a waiting task for as long as it waits.
struct Waiting<'h>(&'h AtomicUsize);

impl<'h> Waiting<'h> {
    fn at(counter: &'h AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
