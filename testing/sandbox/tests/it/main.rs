//! Integration tests of the sandbox: with the answers of a real API server, with kube-rs and with kubectl.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod clients;
mod conformance;
mod define;
mod faults;
mod hook;
mod kubectl;
mod load;
mod original;
mod processes;
mod raw;
mod requests;
mod unauthorized_access;
mod webhooks;
