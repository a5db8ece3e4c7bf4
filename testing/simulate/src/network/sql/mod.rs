//! Everything between a replica and PostgreSQL. The server is a real one; the way to it is disturbed like the way to the
//! API server.

mod frames;
mod line;
mod link;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use stanchion_postgres::{Dial, Dialer, Wire};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use self::line::Line;
use self::link::Link;
use super::Network;
use super::bucket::{self, Bucket};
use crate::server::Server;

/// The port on which every server of a run is reached, besides its own.
pub const PORT: u16 = 5432;

/// How the server is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    #[default]
    Up,
    /// It refuses connections, and those that there were are broken.
    Down,
    /// Nothing comes back.
    Silent,
}

/// The server of a run, and how it is reached. Clones are the same.
#[derive(Clone)]
pub struct Hub {
    server: Arc<Server>,
    bucket: Bucket,
    reached: Arc<Reached>,
}

struct Reached {
    /// How, and since when.
    health: Mutex<(Health, Instant)>,
    /// Wakes in the order of waiting.
    news: Notify,
}

impl Hub {
    /// A server that answers.
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            bucket: Bucket::default(),
            reached: Arc::new(Reached {
                health: Mutex::new((Health::Up, Instant::now())),
                news: Notify::new(),
            }),
        }
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The bucket beside it.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// From now on, it is reached like this.
    pub fn set(&self, health: Health) {
        {
            let mut known = self.reached.health.lock();
            if known.0 != health {
                *known = (health, Instant::now());
            }
        }
        self.reached.news.notify_waiters();
    }

    /// How it is reached, and for how long it has been so.
    pub fn health(&self) -> (Health, Duration) {
        let (health, since) = *self.reached.health.lock();
        (health, since.elapsed())
    }

    /// Returns when it refuses connections.
    async fn down(self) {
        loop {
            let mut news = pin!(self.reached.news.notified());
            news.as_mut().enable();
            if self.health().0 == Health::Down {
                return;
            }
            news.await;
        }
    }
}

/// A network without any server: each connection is refused.
struct Nobody;

impl Dial for Nobody {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Wire>>> {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

/// Refuses each connection.
pub fn nobody() -> Dialer {
    Dialer::new(Nobody)
}

/// A replica's way to the server.
#[derive(Clone)]
struct Sql {
    network: Network,
    replica: usize,
    hub: Hub,
}

impl Network {
    /// Opens a replica's connections to PostgreSQL.
    pub fn dialer(&self, replica: usize, hub: &Hub) -> Dialer {
        Dialer::new(Sql {
            network: self.clone(),
            replica,
            hub: hub.clone(),
        })
    }
}

impl Dial for Sql {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Wire>>> {
        let sql = self.clone();
        Box::pin(async move {
            let Sql {
                network,
                replica,
                hub,
            } = &sql;
            network.reached(*replica).await;
            sleep(network.0.latency.next(&format!("{replica} dial"))).await;
            if address.port() == bucket::PORT {
                return hub.bucket.open(network, *replica);
            }
            if hub.health().0 == Health::Silent {
                std::future::pending::<()>().await;
            }
            let is_there = [PORT, hub.server.port()].contains(&address.port());
            if hub.health().0 == Health::Down || !is_there {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let link = Link::open(Arc::clone(&hub.server))?;
            Ok(Box::new(Line::new(sql.clone(), link)) as Box<dyn Wire>)
        })
    }
}
