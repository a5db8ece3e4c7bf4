//! Everything between a replica and PostgreSQL. The server is a real one; the way to it is disturbed like the way to the
//! API server.

mod frames;
mod line;
mod link;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use stanchion_postgres::{Dial, Dialer, Wire};
use tokio::time::sleep;

use self::line::Line;
use self::link::Link;
use super::Network;
use crate::server::Server;

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
    health: Arc<Mutex<Health>>,
}

impl Hub {
    /// A server that answers.
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            health: Arc::default(),
        }
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// From now on, it is reached like this.
    pub fn set(&self, health: Health) {
        *self.health.lock() = health;
    }

    fn health(&self) -> Health {
        *self.health.lock()
    }
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
            if hub.health() == Health::Silent {
                std::future::pending::<()>().await;
            }
            if hub.health() == Health::Down || address.port() != hub.server.port() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let link = Link::open(Arc::clone(&hub.server), address)?;
            Ok(Box::new(Line::new(sql.clone(), link)) as Box<dyn Wire>)
        })
    }
}
