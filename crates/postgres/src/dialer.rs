//! The sockets of connections.
//!
//! A simulation has paused time and no sockets of its own. It replaces this part, and everything above it, from the
//! login to the pool, stays as it is in production.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// An open connection.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Connects to addresses.
pub trait Dial: Send + Sync {
    /// Connects to an address that was checked.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Wire>>>;
}

/// How TCP connections are opened: by the operating system, unless something else is given.
#[derive(Clone, Default)]
pub struct Dialer(Option<Arc<dyn Dial>>);

impl Dialer {
    /// Opens all connections with this.
    pub fn new(dial: impl Dial + 'static) -> Self {
        Self(Some(Arc::new(dial)))
    }

    /// Connects to an address that was checked.
    pub(crate) async fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Wire>> {
        match self.replaced() {
            Some(dial) => dial.dial(address).await,
            None => Ok(Box::new(TcpStream::connect(address).await?)),
        }
    }

    /// What replaces the operating system.
    pub(crate) fn replaced(&self) -> Option<&dyn Dial> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Dialer(replaced)"
        } else {
            "Dialer(system)"
        })
    }
}

impl PartialEq for Dialer {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Dialer {}
