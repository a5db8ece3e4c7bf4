//! A connection pool with few connections per server.
//!
//! The limit applies to an account, across its databases: `max_connections` of a server is limited, and the server has
//! other clients. An account is an address with its credentials, so an object that names the same server with invalid
//! credentials takes no connections from valid accounts. First come, first served. A connection is kept for a while
//! after use, and closed at once when it is broken, when its credentials have changed, or when another database needs
//! its place.
//!
//! A server that does not answer costs little: a [`breaker`] allows one attempt at a time and pauses between attempts,
//! and no task waits for a connection to a server that has answered nothing for a second.
//!
//! deadpool and bb8 do not replace this: one of their pools serves one connection string, so they cannot limit the
//! connections of an account across databases.
//!
//! Use one connection at a time: tasks that each hold one and wait for a second can use up all of them and then wait
//! for each other until [`PoolSettings::wait`] ends.

mod breaker;
mod host;
mod losses;
mod pooled;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use losses::Listener;
pub use pooled::{Pooled, ReadPooled};

use crate::connection_config::{ConnectionConfig, Fingerprint};
use crate::dialer::Dialer;
use crate::error::Error;
use crate::http::Connector;
use crate::identity::{Identity, Place};
use crate::lock::{Locks, Turn};
use crate::network::AllowedNetworks;
use crate::observe::StatementObserver;
use crate::session::{Budget, Limits, Session, Terms, Timeouts};
use breaker::Breaker;
use host::Host;
use losses::Losses;
use parking_lot::{Mutex, MutexGuard};

/// Settings of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// Maximum number of connections of one account, unless [`Pools::limit`] sets it.
    pub max_per_server: usize,
    /// How long an unused connection is kept.
    pub idle: Duration,
    /// A connection of this age is not used again, so that a name that moved to another server is followed.
    pub max_age: Duration,
    /// How long to wait for a connection.
    pub wait: Duration,
    /// The timeouts of a connection.
    pub timeouts: Timeouts,
    /// The limits of a connection's answers.
    pub limits: Limits,
    /// The allowed addresses.
    pub networks: AllowedNetworks,
    /// How connections are opened.
    pub dialer: Dialer,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            max_per_server: 4,
            idle: Duration::from_mins(1),
            max_age: Duration::from_mins(10),
            wait: Duration::from_secs(30),
            timeouts: Timeouts::default(),
            limits: Limits::SHARED,
            networks: AllowedNetworks::everything(),
            dialer: Dialer::default(),
        }
    }
}

/// The number of our connections to a server, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Open connections, in use or not.
    pub open: usize,
    /// Open connections that are not in use.
    pub idle: usize,
    /// Tasks that wait for a connection.
    pub waiting: usize,
    /// The maximum number of connections.
    pub limit: usize,
    /// The server did not answer the last attempt: its circuit breaker is open.
    pub broken: bool,
}

/// The connections of this process. Clones share them.
#[derive(Clone)]
pub struct Pools(Arc<Inner>);

struct Inner {
    settings: PoolSettings,
    terms: Terms,
    observer: Arc<dyn StatementObserver>,
    locks: Locks,
    losses: Losses,
    known: Mutex<Known>,
}

/// The servers that were used recently.
#[derive(Default)]
struct Known {
    hosts: HashMap<Fingerprint, Arc<Host>>,
    /// By `host:port`. An unreachable address is unreachable for every account.
    addresses: HashMap<String, Arc<Breaker>>,
}

impl Known {
    /// Drops the accounts that no object has named for a while: an author may name a new server every second, and a server
    /// that nobody uses any more is of no interest.
    fn forget_unneeded(&mut self) {
        self.hosts.retain(|_, host| host.is_needed());
        self.addresses.retain(|_, breaker| Arc::strong_count(breaker) > 1);
    }
}

impl Pools {
    /// No connections yet.
    pub fn new(settings: PoolSettings, observer: Arc<dyn StatementObserver>) -> Self {
        let terms = Terms {
            timeouts: settings.timeouts,
            limits: settings.limits,
            budget: Budget::default(),
            networks: settings.networks.clone(),
            dialer: settings.dialer.clone(),
        };
        Self(Arc::new(Inner {
            settings,
            terms,
            observer,
            locks: Locks::default(),
            losses: Losses::default(),
            known: Mutex::default(),
        }))
    }

    /// A connection to the target, as soon as one is available.
    pub async fn get(&self, target: &ConnectionConfig) -> Result<Pooled, Error> {
        let host = self.host(target);
        let (pooled, is_new) = Box::pin(Arc::clone(&host).get(target)).await?;
        if is_new {
            // The same role with another password, which has probably been replaced.
            let others = self.others(&host);
            futures::future::join_all(others.iter().map(|other| other.close_idle())).await;
        }
        Ok(pooled)
    }

    /// The same, only to read: the server refuses a write.
    pub async fn read_only(&self, target: &ConnectionConfig) -> Result<ReadPooled, Error> {
        Ok(self.get(target).await?.into())
    }

    /// A connection in addition to those that the account's limit allows, for a moment.
    pub(crate) async fn beside(&self, target: &ConnectionConfig) -> Result<Session, Error> {
        let Inner { terms, observer, .. } = &*self.0;
        Session::connect_on(target, terms, Arc::clone(observer)).await
    }

    /// Our turn at the target's database, and a connection to it. Waiting for the turn occupies no connection.
    pub async fn exclusive(
        &self,
        target: &ConnectionConfig,
        wait: Duration,
    ) -> Result<(Turn, Pooled), Error> {
        let place = self.place(target).await?;
        let turn = self.0.locks.acquire(&place, target, wait).await?;
        Ok((turn, self.get(target).await?))
    }

    /// As [`Pools::exclusive`], for changes of what the databases of a server share: its roles.
    pub async fn exclusive_on_server(
        &self,
        target: &ConnectionConfig,
        wait: Duration,
    ) -> Result<([Turn; 2], Pooled), Error> {
        let place = self.place(target).await?;
        let server = self.0.locks.acquire(&place.server(), target, wait).await?;
        let database = self.0.locks.acquire(&place, target, wait).await?;
        Ok(([server, database], self.get(target).await?))
    }

    /// The identity of the target's database; queried once and cached until its credentials change.
    pub async fn identity(&self, target: &ConnectionConfig) -> Result<Identity, Error> {
        Ok(self.place(target).await?.identity)
    }

    /// The identity, and its address.
    pub async fn place(&self, target: &ConnectionConfig) -> Result<Place, Error> {
        match self.host(target).known_place(target) {
            Some(place) => Ok(place),
            None => Ok(Place::of(&*self.get(target).await?)),
        }
    }

    /// The queues of the databases.
    pub fn locks(&self) -> &Locks {
        &self.0.locks
    }

    /// Limits the connections of the target's account. If several targets have the same account, the last call wins.
    pub fn limit(&self, target: &ConnectionConfig, max: usize) {
        self.host(target).set_limit(max);
    }

    /// The servers, by `host:port`, and their connections.
    pub fn counts(&self) -> Vec<(String, Counts)> {
        let mut servers: BTreeMap<String, Counts> = BTreeMap::new();
        let mut known = self.known();
        known.forget_unneeded();
        for host in known.hosts.values() {
            let counts = host.counts();
            let sum = servers.entry(host.address().to_owned()).or_default();
            sum.open += counts.open;
            sum.idle += counts.idle;
            sum.waiting += counts.waiting;
            sum.limit += counts.limit;
            sum.broken |= counts.broken;
        }
        servers.into_iter().collect()
    }

    /// Receives every server that has answered and no longer does, as soon as one connection finds out.
    pub fn losses(&self) -> Listener {
        self.0.losses.listen()
    }

    /// Connects HTTP requests to the addresses that this process may connect to.
    pub fn http(&self) -> Connector {
        let PoolSettings { networks, dialer, .. } = &self.0.settings;
        Connector::from_env(networks.clone()).dialing(dialer.clone())
    }

    /// Closes unused connections, and waits for it: the last action before the program ends.
    pub async fn close_idle(&self) {
        let hosts: Vec<_> = self.known().hosts.values().cloned().collect();
        futures::future::join_all(hosts.iter().map(|host| host.close_idle())).await;
    }

    fn host(&self, target: &ConnectionConfig) -> Arc<Host> {
        let account = target.account();
        let mut known = self.known();
        if let Some(host) = known.hosts.get(&account) {
            return Arc::clone(host);
        }
        known.forget_unneeded();
        let address = target.to_string().to_ascii_lowercase();
        let breaker = Arc::clone(known.addresses.entry(address).or_default());
        let inner = &self.0;
        let host = Host::new(
            target,
            &inner.settings,
            &inner.terms,
            &inner.observer,
            breaker,
            &inner.losses,
        );
        known.hosts.insert(account, Arc::clone(&host));
        host
    }

    /// The same role on the same server, with another password.
    fn others(&self, host: &Arc<Host>) -> Vec<Arc<Host>> {
        let known = self.known();
        let same = |other: &&Arc<Host>| !Arc::ptr_eq(other, host) && other.is_same_role(host);
        known.hosts.values().filter(same).cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock()
    }
}
