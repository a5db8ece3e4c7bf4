//! The kernel's integration tests, one module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod events;
mod lease;
mod telemetry;
