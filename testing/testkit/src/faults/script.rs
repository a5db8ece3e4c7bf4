//! Rules that assign faults to requests.

use std::{fmt, time::Duration};

use super::call::Call;

/// Whether a fault happens before or after the server processes the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The server does not receive the request.
    Before,
    /// The server has processed the request.
    After,
}

/// Where an operator is cut off from the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// The request does not reach the server.
    Before,
    /// The server has processed the request; the answer is lost.
    Unanswered,
    /// The server has processed the request and the operator has the answer; no later request is sent.
    Answered,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error instead of the server's answer.
    Answer {
        /// The HTTP status; the reason is the one that Kubernetes uses for it.
        status: u16,
        /// The `Retry-After` header, in seconds.
        retry_after: Option<u32>,
        /// Whether the server processes the request nevertheless.
        moment: Moment,
    },
    /// The connection breaks.
    Disconnect(Moment),
    /// There is never an answer.
    Hang(Moment),
    /// The request is delayed.
    Delay(Duration),
    /// This is the operator's last request: every later one hangs, and [`super::Faults::cut`] returns.
    Cut(CutPoint),
}

impl Fault {
    /// An error instead of processing the request.
    pub fn refuse(status: u16) -> Self {
        Self::Answer {
            status,
            retry_after: None,
            moment: Moment::Before,
        }
    }

    /// An error although the request was processed.
    pub fn deny(status: u16) -> Self {
        Self::Answer {
            status,
            retry_after: None,
            moment: Moment::After,
        }
    }

    /// 429 with a time to wait.
    pub fn throttle(seconds: u32) -> Self {
        Self::Answer {
            status: 429,
            retry_after: Some(seconds),
            moment: Moment::Before,
        }
    }
}

/// One rule of a script: a fault, and the requests that it applies to.
pub struct Rule {
    matches: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    skip: usize,
    times: usize,
    fault: Fault,
}

impl Rule {
    /// Every request that `matches` accepts.
    pub fn when(matches: impl Fn(&Call) -> bool + Send + Sync + 'static, fault: Fault) -> Self {
        Self {
            matches: Box::new(matches),
            skip: 0,
            times: usize::MAX,
            fault,
        }
    }

    /// The `nth` write, from 1.
    pub fn write(nth: usize, fault: Fault) -> Self {
        Self::when(move |call| call.write == Some(nth), fault)
    }

    /// Every write.
    pub fn writes(fault: Fault) -> Self {
        Self::when(|call| call.write.is_some(), fault)
    }

    /// Skips the first matching requests.
    #[must_use]
    pub fn after(mut self, first: usize) -> Self {
        self.skip = first;
        self
    }

    /// Applies to at most this many requests.
    #[must_use]
    pub fn times(mut self, most: usize) -> Self {
        self.times = most;
        self
    }

    /// The fault, if the rule applies to this request.
    pub(super) fn apply(&mut self, call: &Call) -> Option<Fault> {
        if self.times == 0 || !(self.matches)(call) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times -= 1;
        Some(self.fault)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} times after {}", self.fault, self.times, self.skip)
    }
}
