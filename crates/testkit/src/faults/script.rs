//! Which faults happen to which requests.

use std::{fmt, time::Duration};

use super::call::Call;

/// On which side of the server's work a fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The server never sees the request.
    Before,
    /// The server has done what was asked.
    After,
}

/// Where an operator is cut off from the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// The request does not reach the server.
    Before,
    /// The server has done it; the answer is lost.
    Unanswered,
    /// The server has done it and the operator knows; nothing more goes through.
    Answered,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error in place of the server's answer.
    Answer {
        /// The HTTP status; its reason is the one that Kubernetes gives it.
        status: u16,
        /// The `Retry-After` header, in seconds.
        retry_after: Option<u32>,
        /// Whether the server did it nevertheless.
        moment: Moment,
    },
    /// The connection breaks.
    Disconnect(Moment),
    /// No answer, ever.
    Hang(Moment),
    /// The request waits before it goes on.
    Delay(Duration),
    /// This is the operator's last request: every later one hangs, and [`super::Faults::cut`] returns.
    Cut(CutPoint),
}

impl Fault {
    /// An error in place of doing what was asked.
    pub fn refuse(status: u16) -> Self {
        Self::Answer {
            status,
            retry_after: None,
            moment: Moment::Before,
        }
    }

    /// An error although it was done.
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

/// One line of a script: a fault, and the requests it happens to.
pub struct Rule {
    matches: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    skip: usize,
    times: usize,
    fault: Fault,
}

impl Rule {
    /// Every request for which `matches` holds.
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

    /// Leaves the first ones alone.
    #[must_use]
    pub fn after(mut self, first: usize) -> Self {
        self.skip = first;
        self
    }

    /// At most so many.
    #[must_use]
    pub fn times(mut self, most: usize) -> Self {
        self.times = most;
        self
    }

    /// The fault, if it is this request's turn.
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
