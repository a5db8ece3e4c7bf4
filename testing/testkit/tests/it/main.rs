//! Tests of the test environment: what it promises to every other suite.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod cluster;
mod crash;
mod deadline;
mod faults;
mod postgres;
mod process;
mod proxy;
mod s3;
mod test_bed;
mod wait;

use std::time::Duration;

/// Enough for a busy machine; nothing here takes a tenth of it.
const DEADLINE: Duration = Duration::from_mins(1);
