//! The kernel's integration tests, one module per subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod apply;
mod children;
mod crash;
mod driver;
mod events;
mod finalizer;
mod fixture;
mod inactive;
mod kube_pitfalls;
mod lease;
mod problem;
mod status;
mod telemetry;
mod watch;
