//! Free ports on loopback.
//!
//! The port is free when it is chosen; another process may take it before our server binds it, so
//! whoever starts a server tries again with another port.

use std::{collections::HashSet, net::TcpListener, sync::Mutex};

/// A port that nobody listens on and that was not handed out in this process before.
pub fn free() -> u16 {
    static HANDED_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut handed_out = HANDED_OUT.lock().unwrap();
    let handed_out = handed_out.get_or_insert_default();
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("bind a free port on loopback");
        let port = listener
            .local_addr()
            .expect("a bound listener has an address")
            .port();
        if handed_out.insert(port) {
            return port;
        }
    }
}
