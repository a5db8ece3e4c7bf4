//! Free ports on loopback.
//!
//! The port is free when it is chosen. Another process may take it before our server binds it, so the caller retries
//! with another port.

use std::{
    collections::HashSet,
    fs,
    hash::{BuildHasher, RandomState},
    net::TcpListener,
    ops::Range,
};

use crate::error::{Attempt, Error};
use parking_lot::Mutex;

/// A free port that was not returned in this process before.
pub fn free() -> Result<u16, Error> {
    static HANDED_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut handed_out = HANDED_OUT.lock();
    let handed_out = handed_out.get_or_insert_default();
    let quiet = quiet();
    let somewhere = (0..quiet.len()).map(|attempt| {
        let offset = RandomState::new().hash_one(attempt) % quiet.len() as u64;
        quiet.start + u16::try_from(offset).unwrap_or_default()
    });
    let found = somewhere
        .filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .find(|&port| handed_out.insert(port));
    match found {
        Some(port) => Ok(port),
        None => Ok(TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .attempting(|| "find a free port on loopback".to_owned())?
            .port()),
    }
}

/// Ports below the range that the system uses for outgoing connections and for servers without a fixed port: a port
/// there that is free now is seldom taken a moment later.
fn quiet() -> Range<u16> {
    let given_out = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    let first = given_out.and_then(|range| range.split_whitespace().next()?.parse().ok());
    let end = first.filter(|&first| first > 20_000).unwrap_or(32_768);
    end - 10_000..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_not_given_twice_and_no_connection_gets_it_by_chance() {
        let ports: HashSet<_> = (0..50).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| quiet().contains(port)));
    }
}
