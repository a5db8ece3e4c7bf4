//! Limits for the answers of a server.
//!
//! A server that an object names may be hostile. Its data is measured on arrival, message by message, and refused
//! before it is kept: one row of two gigabytes by its header, a million rows at the limit, a flood of notices like
//! rows. The measure is an estimate of the memory that an answer needs here, not its bytes: a row of seven bytes needs
//! a hundred.

use std::sync::Arc;

use tokio::sync::Semaphore;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Limits for the answers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, and therefore of one row.
    pub message: usize,
    /// Estimated memory of the answer to one request.
    pub answer: usize,
    /// Rows in the answer to one request.
    pub rows: usize,
}

impl Limits {
    /// For an operator, which shares its memory between many servers.
    pub const SHARED: Self = Self {
        message: 4 * MIB,
        answer: 24 * MIB,
        rows: 200_000,
    };

    /// For a command of a person, which uses one server and ends.
    pub const ALONE: Self = Self {
        message: 256 * MIB,
        answer: 2048 * MIB,
        rows: 50_000_000,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::SHARED
    }
}

/// The memory budget of all current answers together. Clones share it.
///
/// Small answers do not need it, so a flood from one server does not delay queries to others. A larger answer that
/// exceeds the rest of the budget waits for a moment, and is then given up: the query is retried later.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / STEP)))
    }

    pub(super) fn steps(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(64 * MIB)
    }
}

/// The part of an answer that does not count.
pub(super) const FREE: usize = 256 * KIB;
/// The budget is taken in steps of this size.
pub(super) const STEP: usize = 256 * KIB;
