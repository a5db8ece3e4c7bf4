//! Tests against real servers of every version.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod batch;
mod connect;
mod fence;
mod handover;
mod hostile;
mod identity;
mod lock;
mod pool;
mod read_only;
mod scram;
mod secrets;
mod server;
mod support;
mod tls;
