//! The connections of one account: an address with its credentials.

mod databases;
mod guards;
mod idle;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use self::databases::Databases;
use self::guards::{Slot, Waiting, Witness};
pub(super) use self::idle::Idle;
use self::idle::Next;
use super::breaker::{Breaker, HURRY};
use super::losses::Losses;
use super::pooled::Pooled;
use super::{Counts, PoolSettings};
use crate::connection_config::{ConnectionConfig, Fingerprint};
use crate::error::{Error, Kind};
use crate::identity::Place;
use crate::observe::{StatementObserver, Statements};
use crate::session::{Session, Terms};
use crate::sqlstate::{Class, Doing};

/// How long an unused account is kept.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// Role and database of a connection. The fingerprint changes with the credentials.
type Login = (String, String);

pub(super) struct Host {
    settings: PoolSettings,
    terms: Terms,
    observer: Arc<dyn StatementObserver>,
    /// Any target of this account; its database does not matter.
    target: ConnectionConfig,
    /// `host:port`.
    address: String,
    /// Whether the address can be reached, which all accounts share, and whether this account can log in.
    network: Arc<Breaker>,
    login: Breaker,
    databases: Databases,
    losses: Losses,
    /// A permit for each connection in use. Tokio grants them in the order of the requests.
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    limit: usize,
    /// Number of permits to withdraw, because the limit has decreased.
    surplus: usize,
    /// Connections in use and idle ones.
    open: usize,
    /// The longest unused first.
    idle: Vec<Idle>,
    identities: HashMap<Login, (Fingerprint, Place)>,
    /// A task exists that closes the idle ones.
    reaped: bool,
    /// When the server last answered.
    answered: Instant,
    /// A task timed out, and nothing has succeeded since: one connection in use is enough to find out more.
    strained: bool,
    /// When this account was last used.
    named: Instant,
}

fn login(target: &ConnectionConfig) -> Login {
    (target.user().to_owned(), target.database().to_owned())
}

impl Host {
    pub(super) fn new(
        target: &ConnectionConfig,
        settings: &PoolSettings,
        terms: &Terms,
        observer: &Arc<dyn StatementObserver>,
        network: Arc<Breaker>,
        losses: &Losses,
    ) -> Arc<Self> {
        let limit = settings.max_per_server.max(1);
        let now = Instant::now();
        let state = State {
            limit,
            surplus: 0,
            open: 0,
            idle: Vec::new(),
            identities: HashMap::new(),
            reaped: false,
            answered: now,
            strained: false,
            named: now,
        };
        Arc::new_cyclic(|host| Self {
            settings: settings.clone(),
            terms: terms.clone(),
            observer: Arc::new(Witness::new(Weak::clone(host), Arc::clone(observer))),
            target: target.clone(),
            address: target.to_string().to_ascii_lowercase(),
            network,
            login: Breaker::default(),
            databases: Databases::default(),
            losses: losses.clone(),
            permits: Arc::new(Semaphore::new(limit)),
            waiting: AtomicUsize::new(0),
            state: Mutex::new(state),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Whether only the password differs.
    pub(super) fn is_same_role(&self, other: &Self) -> bool {
        self.target.without_password().account() == other.target.without_password().account()
    }

    /// Whether the account has connections, or was used recently.
    pub(super) fn is_needed(self: &Arc<Self>) -> bool {
        let state = self.lock();
        state.open > 0 || state.named.elapsed() < FORGOTTEN || Arc::strong_count(self) > 1
    }

    /// A connection, and whether it is a new one.
    pub(super) async fn get(self: Arc<Self>, target: &ConnectionConfig) -> Result<(Pooled, bool), Error> {
        let permit = self.permit(target).await?;
        let fingerprint = target.fingerprint();
        let next = self.next(target, fingerprint);
        let is_new = matches!(next, Next::Open(_));
        let idle = match next {
            Next::Use(idle) => *idle,
            Next::Open(replaced) => {
                // Counts as open from here on, even if this future is dropped.
                let slot = Slot::of(&self);
                join_all(replaced.into_iter().map(|idle| idle.session.close())).await;
                let session = self.open(target).await?;
                slot.keep();
                self.mind(&session);
                self.remember(target, fingerprint, Place::of(&session));
                let now = Instant::now();
                Idle {
                    session,
                    fingerprint,
                    opened: now,
                    since: now,
                }
            }
        };
        Ok((Pooled::new(self, permit, idle), is_new))
    }

    /// Connects, unless a breaker is open.
    async fn open(self: &Arc<Self>, target: &ConnectionConfig) -> Result<Session, Error> {
        let network = self.network.enter(target).await?;
        let login = self.login.enter(target).await?;
        let breaker = self.databases.breaker_of(&self::login(target));
        let database = breaker.enter(target).await?;
        let opened = Session::connect_on(target, &self.terms, Arc::clone(&self.observer)).await;
        let opened = opened.map_err(|error| match error.class() {
            Class::Transient => error.left_alone(),
            _ => error,
        });
        match &opened {
            Ok(_) => {
                network.succeeded();
                login.succeeded();
                database.succeeded();
            }
            // The server answered, and refuses this database: its owner may limit it, and the others stay open.
            Err(error) if error.class() == Class::Transient && error.is_about_the_database() => {
                network.succeeded();
                login.succeeded();
                database.failed(error);
            }
            // Only transient failures: a wrong password is retried soon enough by its own objects.
            Err(error) => {
                let is_down = error.class() == Class::Transient;
                let mut lost = match error.reached() {
                    Some(false) if is_down => network.failed(error),
                    Some(true) => {
                        network.succeeded();
                        false
                    }
                    Some(false) | None => false,
                };
                if is_down {
                    lost |= login.failed(error);
                }
                if lost {
                    self.losses.announce(&self.address);
                }
            }
        }
        opened
    }

    /// A connection that the server ends may be the first sign that it is gone: another one shows whether it is, and the
    /// breakers announce it.
    fn mind(self: &Arc<Self>, session: &Session) {
        let (ended, host) = (session.lost(), Arc::downgrade(self));
        let target = session.target().clone();
        tokio::spawn(async move {
            if !ended.await {
                return;
            }
            let Some(host) = host.upgrade() else { return };
            // Without a free place others are asking already.
            let Ok(permit) = host.permits.clone().try_acquire_owned() else {
                return;
            };
            // It does not stay open: a server that ends what nobody uses would be asked again and again.
            if let Ok(session) = host.open(&target).await {
                session.close().await;
            }
            host.release(permit);
        });
    }

    async fn permit(&self, target: &ConnectionConfig) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = Waiting::at(&self.waiting);
        let begun = Instant::now();
        let end = begun + self.settings.wait;
        let mut permit = std::pin::pin!(self.permits.clone().acquire_owned());
        self.lock().named = begun;
        loop {
            let until = {
                let state = self.lock();
                let busy = state.strained && state.open > state.idle.len();
                (!busy).then(|| (state.answered.max(begun) + HURRY).min(end))
            };
            if let Some(until) = until {
                if let Ok(Ok(permit)) = timeout_at(until, &mut permit).await {
                    return Ok(permit);
                }
                let now = Instant::now();
                let mut state = self.lock();
                if now < end && state.answered + HURRY > now {
                    continue;
                }
                state.strained |= state.answered + HURRY <= now;
            }
            // The message of the breaker, if it is open, so that tasks that time out and tasks that it refuses report the same.
            let known = self.network.open_for().or_else(|| self.login.open_for());
            let cause =
                "all connections of this account are in use, and the server has not answered for a while";
            return Err(known.map_or_else(
                || Error::new(Kind::Exhausted, Doing::Connecting, target, cause),
                Error::not_tried,
            ));
        }
    }

    /// The server answered, or has not for so long that it counts as gone.
    fn witness(&self, statements: &Statements<'_>) {
        if !statements.answered {
            if statements.elapsed > self.settings.timeouts.statement {
                self.stopped_answering();
            }
            return;
        }
        let mut state = self.lock();
        state.answered = Instant::now();
        if statements.succeeded {
            state.strained = false;
        }
    }

    /// A task stopped waiting for an answer. If the server has answered nobody in the meantime, and a new connection would
    /// have failed by now, it counts as gone: otherwise a frozen server holds up each task until its deadline.
    fn abandoned(&self, after: Duration) {
        let is_silent = self.lock().answered.elapsed() >= after;
        if is_silent && after > self.settings.timeouts.connect {
            self.stopped_answering();
        }
    }

    fn stopped_answering(&self) {
        let cause = "the server stopped answering";
        let error = Error::new(Kind::TimedOut, Doing::Reading, &self.target, cause);
        if self.login.trip(&error.left_alone()) {
            self.losses.announce(&self.address);
        }
    }

    pub(super) fn set_limit(&self, limit: usize) {
        let limit = limit.max(1);
        let mut state = self.lock();
        state.named = Instant::now();
        let before = std::mem::replace(&mut state.limit, limit);
        if limit > before {
            let forgiven = state.surplus.min(limit - before);
            state.surplus -= forgiven;
            self.permits.add_permits(limit - before - forgiven);
        } else {
            state.surplus += before - limit - self.permits.forget_permits(before - limit);
        }
    }

    /// Returns a permit; it is withdrawn if the limit has decreased.
    pub(super) fn release(&self, permit: OwnedSemaphorePermit) {
        let mut state = self.lock();
        if state.surplus > 0 {
            state.surplus -= 1;
            permit.forget();
        }
    }

    pub(super) fn known_place(&self, target: &ConnectionConfig) -> Option<Place> {
        let state = self.lock();
        let (fingerprint, place) = state.identities.get(&login(target))?;
        (*fingerprint == target.fingerprint()).then(|| place.clone())
    }

    fn remember(&self, target: &ConnectionConfig, fingerprint: Fingerprint, place: Place) {
        self.lock().identities.insert(login(target), (fingerprint, place));
    }

    pub(super) fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            open: state.open,
            idle: state.idle.len(),
            waiting: self.waiting.load(Ordering::Relaxed),
            limit: state.limit,
            broken: self.network.is_open() || self.login.is_open(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
