//! What was seen on the network: a line for everything, and what must never be.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// Receives what a controller is about to do outside Kubernetes.
pub type Witness = Arc<dyn Fn(&str) + Send + Sync>;

/// Who holds the Lease, as the API server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// There is no election.
    None,
    /// Nobody.
    Free,
    /// A replica.
    Held(usize),
    /// Somebody else, since then. The replica that held it has until its next look to notice.
    Stolen(Instant),
}

/// The record. Clones are the same record.
#[derive(Clone)]
pub struct Record(Arc<Mutex<State>>);

struct State {
    start: Instant,
    lines: Vec<String>,
    violations: Vec<String>,
    lease: Lease,
    /// How long a replica may take to notice that the Lease was stolen.
    notice: Duration,
    last_write: (Instant, String),
    writes: usize,
}

impl Record {
    /// Begins now.
    pub fn new(lease: Lease, notice: Duration) -> Self {
        let start = Instant::now();
        Self(Arc::new(Mutex::new(State {
            start,
            lines: Vec::new(),
            violations: Vec::new(),
            lease,
            notice,
            last_write: (start, String::new()),
            writes: 0,
        })))
    }

    /// Adds a line.
    pub fn note(&self, line: &str) {
        let mut state = self.lock();
        let at = state.start.elapsed().as_secs_f64();
        state.lines.push(format!("{at:10.3}  {line}"));
    }

    /// Something that must never be.
    pub fn violate(&self, what: String) {
        self.note(&format!("VIOLATED: {what}"));
        self.lock().violations.push(what);
    }

    /// A replica is about to write outside of the cluster.
    pub fn writes(&self, replica: usize, what: &str) {
        self.leads(replica, what);
        self.wrote(what);
    }

    /// Something was written. What the API server refuses changes nothing, however often it is tried.
    pub fn wrote(&self, what: &str) {
        let mut state = self.lock();
        state.last_write = (Instant::now(), what.to_owned());
        state.writes += 1;
    }

    /// A replica that does this must hold the Lease.
    pub fn leads(&self, replica: usize, what: &str) {
        let violated = {
            let state = self.lock();
            match state.lease {
                Lease::None => false,
                Lease::Held(holder) => holder != replica,
                Lease::Free => true,
                Lease::Stolen(since) => since.elapsed() > state.notice,
            }
        };
        if violated {
            let lease = self.lock().lease;
            self.violate(format!(
                "replica {replica} writes {what} without the lease ({lease:?})"
            ));
        }
    }

    /// Somebody has written the Lease.
    pub fn leased(&self, lease: Lease) {
        self.lock().lease = lease;
    }

    /// How many writes there were, and how long ago the last one was.
    pub fn writing(&self) -> (usize, Duration) {
        let state = self.lock();
        (state.writes, state.last_write.0.elapsed())
    }

    /// What was written last.
    pub fn last_write(&self) -> String {
        self.lock().last_write.1.clone()
    }

    /// All lines, in order.
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone()
    }

    /// What must never have been.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
