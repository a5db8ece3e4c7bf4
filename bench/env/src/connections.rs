//! Number of concurrent connections, from the server's log.

use std::collections::HashSet;

use stanchion_testkit::postgres::LogEntry;

/// The maximum number of concurrent sessions of this user.
pub(crate) fn most(entries: &[LogEntry], login: &str) -> usize {
    let (mut open, mut most) = (HashSet::new(), 0);
    for entry in entries.iter().filter(|entry| entry.user == login) {
        if entry.message.starts_with("connection authorized") {
            open.insert(entry.pid);
            most = most.max(open.len());
        } else if entry.message.starts_with("disconnection") {
            open.remove(&entry.pid);
        }
    }
    most
}
