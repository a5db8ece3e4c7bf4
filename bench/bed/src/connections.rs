//! How many connections there were at once, by the server's log.

use std::collections::HashSet;

use stanchion_testkit::postgres::LogEntry;

/// The most that sessions of this user had open at the same time.
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
