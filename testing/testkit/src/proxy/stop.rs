//! Where the proxy stops: at which message, before or after it, and what happens then.

use std::fmt;

use super::framing::Message;

/// Whether a connection is cut before or after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The server does not receive the message.
    Before,
    /// The server has processed the message; the client does not receive the answer.
    After,
}

/// Cuts a connection at the nth message since the stop was armed.
pub struct Stop {
    pub(super) nth: usize,
    pub(super) point: Point,
    pub(super) stay_cut: bool,
    counts: Box<dyn Fn(&Message) -> bool + Send + Sync>,
}

impl Stop {
    /// At the `nth` message, counted from 1.
    pub fn at(nth: usize, point: Point) -> Self {
        Self {
            nth,
            point,
            stay_cut: false,
            counts: Box::new(|_| true),
        }
    }

    /// Counts only messages that this accepts.
    #[must_use]
    pub fn counting(mut self, counts: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Self {
        self.counts = Box::new(counts);
        self
    }

    /// Afterwards closes every connection, old or new, until [`super::Proxy::restore`]. Otherwise only the connection
    /// of the message is lost.
    #[must_use]
    pub fn and_stay_cut(mut self) -> Self {
        self.stay_cut = true;
        self
    }

    /// Whether `message` is the one to stop at; counts it if not.
    pub(super) fn is_due(&mut self, message: &Message) -> bool {
        if (self.counts)(message) {
            self.nth = self.nth.saturating_sub(1);
            return self.nth == 0;
        }
        false
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} more messages", self.point, self.nth)
    }
}
