//! Free ports on loopback.
//!
//! The port is free when it is chosen; another process may take it before our server binds it, so
//! whoever starts a server tries again with another port.

use std::{
    collections::HashSet,
    net::TcpListener,
    sync::{Mutex, PoisonError},
};

use crate::error::{Attempt, Error};

/// A port that nobody listens on and that was not handed out in this process before.
pub fn free() -> Result<u16, Error> {
    static HANDED_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let handed_out = handed_out.get_or_insert_default();
    loop {
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .attempting(|| "find a free port on loopback".to_owned())?
            .port();
        if handed_out.insert(port) {
            return Ok(port);
        }
    }
}
