//! How much a server may answer.
//!
//! A server that somebody names may be anybody's. What it sends is measured where it arrives, message by message,
//! and refused before it is kept: one row of two gigabytes by its header, a million rows when they have become too
//! many, a flood of notices like rows. What is measured is an estimate of the memory that an answer needs here, and
//! not its bytes: a row of seven bytes needs a hundred.

use std::sync::Arc;

use tokio::sync::Semaphore;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// How much one server may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, and so of one row.
    pub message: usize,
    /// Memory for the answer to one request, estimated.
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

    /// For a person's own command, which looks at one server and ends.
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

/// What all answers under way may need together. Clones share it.
///
/// Small answers need nothing of it, so that a flood from one server does not hold up the questions to others. A
/// larger one that finds too little left waits for a moment, and is then given up: it is asked for again later.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// Answers of together so many bytes.
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

/// So much of an answer is free.
pub(super) const FREE: usize = 256 * KIB;
/// So much is taken from the budget at a time.
pub(super) const STEP: usize = 256 * KIB;
