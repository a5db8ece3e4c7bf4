//! Limits of the admission server: connections, received bytes, bytes that are parsed at the same time.
//!
//! Every client that reaches the port can open connections and send bytes. Each limit applies to the whole server and
//! to each address, so that one client can exhaust neither the memory nor the API server's share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The API server keeps a few connections; more than this come from other clients.
const CONNECTIONS: usize = 64;
/// At most half of the connections for one address.
const OF_ONE_ADDRESS: usize = CONNECTIONS / 2;
/// A review contains the object twice, and etcd accepts 1.5 MiB of it.
pub(super) const MAX_BODY: usize = 3 * 1024 * 1024;
/// Bytes of requests that have been received and not answered.
const ARRIVED: usize = 16 * 1024 * 1024;
/// Bytes of requests that are parsed at the same time: the parsed values can take twenty times as much.
const READ: usize = 4 * 1024 * 1024;

/// The limits of one server.
#[derive(Clone)]
pub(super) struct Budget {
    connections: Arc<Semaphore>,
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
    arrived: Arc<Semaphore>,
    read: Arc<Semaphore>,
}

/// Why a body was rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the request is larger than {MAX_BODY} bytes")]
    TooLarge,
    #[error("the request broke off")]
    BrokeOff,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            addresses: Arc::default(),
            arrived: Arc::new(Semaphore::new(ARRIVED)),
            read: Arc::new(Semaphore::new(READ)),
        }
    }
}

impl Budget {
    /// Waits until one more connection is allowed.
    pub(super) async fn connection(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).acquire_owned().await.ok()
    }

    /// The slot of a connection from this address; `None` if it has too many.
    pub(super) fn of_address(&self, address: IpAddr) -> Option<OfAddress> {
        let mut addresses = self.addresses.lock();
        let open = addresses.entry(address).or_default();
        if *open >= OF_ONE_ADDRESS {
            return None;
        }
        *open += 1;
        Some(OfAddress {
            addresses: Arc::clone(&self.addresses),
            address,
        })
    }

    /// Receives a body, as fast as the limits allow.
    pub(super) async fn take_in(&self, mut body: Body) -> Result<Taken, BodyError> {
        let (mut bytes, mut held) = (BytesMut::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyError::BrokeOff)?.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > MAX_BODY {
                drop((bytes, held));
                discard(body).await;
                return Err(BodyError::TooLarge);
            }
            let size = u32::try_from(data.len()).map_err(|_| BodyError::TooLarge)?;
            let room = Arc::clone(&self.arrived).acquire_many_owned(size).await;
            held.push(room.map_err(|_| BodyError::BrokeOff)?);
            bytes.extend_from_slice(&data);
        }
        Ok(Taken {
            bytes: bytes.freeze(),
            _held: held,
        })
    }

    /// Waits until a body of this size may be parsed.
    pub(super) async fn reading(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let size = u32::try_from(size.min(READ)).ok()?;
        Arc::clone(&self.read).acquire_many_owned(size).await.ok()
    }
}

/// Reads and drops the rest of a body that is too large: a client that is still sending would not read the response.
async fn discard(mut body: Body) {
    let mut left = 4 * MAX_BODY;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// A body that counts towards the limits until it is dropped.
pub(super) struct Taken {
    pub(super) bytes: Bytes,
    _held: Vec<OwnedSemaphorePermit>,
}

/// A connection that counts towards the limit of its address until it is dropped.
pub(super) struct OfAddress {
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl Drop for OfAddress {
    fn drop(&mut self) {
        let mut addresses = self.addresses.lock();
        if let Some(open) = addresses.get_mut(&self.address) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::stream;

    use super::*;

    fn body(megabytes: usize) -> Body {
        let chunk = Bytes::from(vec![b'a'; 1024 * 1024]);
        Body::from_stream(stream::iter(
            (0..megabytes).map(move |_| Ok::<_, std::io::Error>(chunk.clone())),
        ))
    }

    #[tokio::test]
    async fn a_body_is_taken_up_to_its_limit() {
        let budget = Budget::default();
        assert_eq!(budget.take_in(body(3)).await.unwrap().bytes.len(), MAX_BODY);
        assert_eq!(budget.take_in(body(4)).await.err(), Some(BodyError::TooLarge));
        assert_eq!(
            budget.arrived.available_permits(),
            ARRIVED,
            "nothing is held any longer"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn all_bodies_together_have_a_limit() {
        let budget = Budget::default();
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(budget.take_in(body(3)).await.unwrap());
        }
        let sixth = tokio::time::timeout(std::time::Duration::from_secs(10), budget.take_in(body(3)));
        assert!(sixth.await.is_err());
        held.clear();
        assert!(budget.take_in(body(3)).await.is_ok());
    }

    #[test]
    fn one_address_has_at_most_half_of_the_connections() {
        let (budget, address) = (Budget::default(), IpAddr::from(Ipv4Addr::LOCALHOST));
        let open: Vec<_> = std::iter::from_fn(|| budget.of_address(address)).collect();
        assert_eq!(open.len(), CONNECTIONS / 2);
        assert!(budget.of_address(IpAddr::from([10, 0, 0, 1])).is_some());
        drop(open);
        assert!(budget.of_address(address).is_some());
        assert!(budget.addresses.lock().is_empty());
    }
}
