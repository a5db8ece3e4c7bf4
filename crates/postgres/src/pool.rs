//! Few connections a server, shared by everybody who needs one.
//!
//! The limit is the server's, across its databases and users: what runs out on a server is `max_connections`, and
//! it serves others than us. Who comes first is served first. A connection is kept for a while after use, and given
//! up at once when it is broken, when its credentials have changed, or when another database needs its place.
//!
//! Hold one connection at a time: tasks that each hold one and wait for a second can use up all of them and then
//! wait for each other until [`PoolSettings::wait`] is over.

mod host;
mod pooled;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use pooled::Pooled;

use crate::error::Error;
use crate::identity::Identity;
use crate::lock::{Locks, Turn};
use crate::observe::StatementObserver;
use crate::session::Timeouts;
use crate::target::Target;
use host::Host;

/// How connections are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// Connections to one server, unless [`Pools::limit`] says otherwise.
    pub max_per_server: usize,
    /// How long one that nobody uses is kept.
    pub idle: Duration,
    /// After this age one is not used again, so that a name that moved to another server is followed.
    pub max_age: Duration,
    /// How long to wait for one.
    pub wait: Duration,
    /// The limits of each.
    pub timeouts: Timeouts,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            max_per_server: 4,
            idle: Duration::from_mins(1),
            max_age: Duration::from_mins(10),
            wait: Duration::from_secs(30),
            timeouts: Timeouts::default(),
        }
    }
}

/// How many connections a server has from us, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Open ones, in use or not.
    pub open: usize,
    /// Open ones that nobody uses.
    pub idle: usize,
    /// Tasks that wait for one.
    pub waiting: usize,
    /// The most there can be.
    pub limit: usize,
}

/// The connections of this process. Clones share them.
#[derive(Clone)]
pub struct Pools(Arc<Inner>);

struct Inner {
    settings: PoolSettings,
    observer: Arc<dyn StatementObserver>,
    locks: Locks,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

impl Pools {
    /// No connections yet.
    pub fn new(settings: PoolSettings, observer: Arc<dyn StatementObserver>) -> Self {
        Self(Arc::new(Inner {
            settings,
            observer,
            locks: Locks::default(),
            hosts: Mutex::default(),
        }))
    }

    /// A connection to the target, as soon as there is one.
    pub async fn get(&self, target: &Target) -> Result<Pooled, Error> {
        Box::pin(self.host(target).get(target)).await
    }

    /// Our turn at the target's database, and a connection to it. Waiting for the turn occupies no connection.
    pub async fn exclusive(&self, target: &Target, wait: Duration) -> Result<(Turn, Pooled), Error> {
        let identity = self.identity(target).await?;
        let turn = self.0.locks.acquire(&identity, target, wait).await?;
        Ok((turn, self.get(target).await?))
    }

    /// As [`Pools::exclusive`], for who changes what the databases of a server share: its roles.
    pub async fn exclusive_on_server(
        &self,
        target: &Target,
        wait: Duration,
    ) -> Result<([Turn; 2], Pooled), Error> {
        let identity = self.identity(target).await?;
        let server = self.0.locks.acquire(&identity.server(), target, wait).await?;
        let database = self.0.locks.acquire(&identity, target, wait).await?;
        Ok(([server, database], self.get(target).await?))
    }

    /// Which database the target is; asked once and remembered until its credentials change.
    pub async fn identity(&self, target: &Target) -> Result<Identity, Error> {
        match self.host(target).known_identity(target) {
            Some(identity) => Ok(identity),
            None => Ok(self.get(target).await?.identity().clone()),
        }
    }

    /// The queues at the databases.
    pub fn locks(&self) -> &Locks {
        &self.0.locks
    }

    /// Limits the connections to the target's server. If several targets name it, the last word counts.
    pub fn limit(&self, target: &Target, max: usize) {
        self.host(target).set_limit(max);
    }

    /// The servers, by `host:port`, and their connections.
    pub fn counts(&self) -> Vec<(String, Counts)> {
        let hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts
            .iter()
            .map(|(name, host)| (name.clone(), host.counts()))
            .collect()
    }

    /// Closes what nobody uses, and waits for it: the last thing before the program ends.
    pub async fn close_idle(&self) {
        let hosts: Vec<_> = {
            let hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.values().cloned().collect()
        };
        futures::future::join_all(hosts.iter().map(|host| host.close_idle())).await;
    }

    fn host(&self, target: &Target) -> Arc<Host> {
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Host::new(self.0.settings, self.0.observer.clone()));
        hosts
            .entry(target.to_string().to_ascii_lowercase())
            .or_insert_with(new)
            .clone()
    }
}
